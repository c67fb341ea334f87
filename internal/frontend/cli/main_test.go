package cli_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// The tests may be started with ignored signals, as by nohup(1), and litterbox
// leaves those alone. They run as if from a terminal: a subscription ends what
// was inherited.
func TestMain(m *testing.M) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Stop(caught)
	os.Exit(m.Run())
}
