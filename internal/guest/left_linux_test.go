package guest_test

import (
	"sync"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// A command that begins while another one ends was not left running by that
// one.
func TestOthersAreNotLeftBehind(t *testing.T) {
	b := newBox(t)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 40 {
				exit, err := wire.Run(limit(t), b.open(), wire.Exec{Argv: argv("true")}, wire.Streams{})
				if err != nil || len(exit.Background) > 0 {
					t.Errorf("%+v, %v", exit, err)
					return
				}
			}
		})
	}
	running.Wait()
}
