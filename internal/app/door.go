package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/door"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/ssh"
)

// serveClient serves an OpenSSH client on standard input and output. The client
// shows what it writes to standard error.
func serveClient(ctx context.Context, host string) error {
	client, err := openStandard()
	if err != nil {
		return err
	}
	built, err := build(func(string, int, int) {})
	if err != nil {
		return err
	}
	found, err := built.FindHost(ctx, host)
	if err != nil {
		return err
	}
	key, err := door.Files(built.DoorFiles()).HostKey()
	if err != nil {
		return err
	}
	return ssh.Serve(ctx, ssh.Options{
		Engine: built, Host: found, HostKey: key, Shell: caller.Of(ctx).Get("SHELL"), Client: client,
		Warn: func(text string) { fmt.Fprintln(os.Stderr, "litterbox: "+text) },
	})
}

// standard is standard input and output as one stream.
type standard struct{ in, out *os.File }

// openStandard makes the client's descriptors non-blocking, so that Close ends a
// pending read.
func openStandard() (standard, error) {
	for _, file := range []*os.File{os.Stdin, os.Stdout} {
		if info, err := file.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
			return standard{}, fault.New(fault.Invalid, "cannot serve an OpenSSH client: %s is not its end of a pipe", file.Name()).
				WithHint("litterbox ssh-config --install, then ssh NAME.litterbox")
		}
	}
	if err := errors.Join(syscall.SetNonblock(0, true), syscall.SetNonblock(1, true)); err != nil {
		return standard{}, fault.Wrap(fault.Unavailable, err, "cannot serve an OpenSSH client")
	}
	return standard{os.NewFile(0, "stdin"), os.NewFile(1, "stdout")}, nil
}

func (s standard) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s standard) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s standard) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }
