package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// keys are the user's actions while a screen is watched. The zero value is for a
// screen without a user: nothing ever happens.
type keys struct {
	quit    <-chan struct{} // q, Ctrl-C or Ctrl-D was typed
	resized <-chan os.Signal
	stop    func()
}

// watchKeys takes single keys from the terminal until stop.
func (c *console) watchKeys(ctx context.Context) keys {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	k := keys{resized: resized, stop: func() { signal.Stop(resized) }}
	in, ok := terminal(c.stdin)
	if !ok || !foreground(in) {
		return k
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return k
	}
	quit := make(chan struct{})
	k.quit = quit
	k.stop = func() {
		signal.Stop(resized)
		_ = term.Restore(int(in.Fd()), state) // the terminal has hung up
	}
	go func() {
		defer close(quit)
		key := make([]byte, 1)
		for ctx.Err() == nil {
			n, err := in.Read(key)
			if err != nil || n == 1 && (key[0] == 'q' || key[0] == 'Q' || key[0] == 3 || key[0] == 4) {
				return
			}
		}
	}()
	return k
}
