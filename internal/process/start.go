package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Answer runs an open program on input, and returns its standard output. The
// program ends with ctx.
func Answer(ctx context.Context, program *os.File, name string, env []string, input []byte) ([]byte, error) {
	order, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer order.Close()
	out, output, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer out.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, errors.Join(err, in.Close(), output.Close())
	}
	child, err := Start(program, []string{name}, &os.ProcAttr{Env: env, Files: []*os.File{order, output, null}})
	if err := errors.Join(err, output.Close(), null.Close()); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	go func() {
		_, _ = in.Write(input) // a program that dies early shows in its state
		in.Close()
	}()
	stop := context.AfterFunc(ctx, func() { _ = child.Kill(); out.Close() })
	defer stop()
	answer, readErr := io.ReadAll(out)
	state, err := child.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Join(err, readErr) != nil:
		return nil, errors.Join(err, readErr)
	case !state.Success():
		return nil, fmt.Errorf("%s ended with %s", name, state)
	}
	return answer, nil
}
