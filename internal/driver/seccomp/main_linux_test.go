package seccomp_test

import (
	"flag"
	"os"
	"testing"
)

// childVariable names what the test binary does instead of testing when it
// executes itself: filters cannot be removed from a process.
const childVariable = "LITTERBOX_TEST_SECCOMP_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childVariable); mode != "" {
		os.Exit(child(mode))
	}
	flag.Bool("update", false, "rewrite the golden files")
	os.Exit(m.Run())
}
