package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
)

// Filter runs an open program, with these arguments, over a stream: what it prints
// is read from the result. When the program fails, the end of what it printed is an
// error with what it said. Close ends it early, too; the stream may be read for a
// moment longer, until it ends or is closed.
func Filter(program *os.File, argv, env []string, stream io.Reader) (io.ReadCloser, error) {
	var opened []*os.File
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			opened = append(opened, r, w)
		}
		return r, w, err
	}
	input, in, err1 := pipe()
	out, output, err2 := pipe()
	words, said, err3 := pipe()
	err := errors.Join(err1, err2, err3)
	var child *os.Process
	if err == nil {
		child, err = Start(program, argv, &os.ProcAttr{Env: env, Files: []*os.File{input, output, said}})
	}
	if err != nil {
		for _, one := range opened {
			err = errors.Join(err, one.Close())
		}
		return nil, err
	}
	err = errors.Join(input.Close(), output.Close(), said.Close())
	f := &filter{out: out, in: in, words: words, child: child, name: argv[0], sent: make(chan error, 1), heard: make(chan string, 1)}
	go func() {
		_, sendErr := io.Copy(in, stream)
		f.sent <- sendErr
		_ = in.Close() // the program shows what it got
	}()
	go func() {
		text, _ := io.ReadAll(io.LimitReader(words, mostWords)) // its exit says that it failed
		f.heard <- string(text)
	}()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// mostWords is how much of what a program says is kept, in bytes.
const mostWords = 4 << 10

type filter struct {
	out, in, words *os.File
	child          *os.Process
	name           string
	sent           chan error
	heard          chan string

	once  sync.Once
	ended error // how it ended, io.EOF for the best; after end
}

// Read implements io.Reader.
func (f *filter) Read(p []byte) (int, error) {
	n, err := f.out.Read(p)
	if errors.Is(err, io.EOF) {
		err = f.end()
	}
	return n, err
}

// end waits for the program, which has ended or is about to.
func (f *filter) end() error {
	f.once.Do(func() {
		state, err := f.child.Wait()
		_ = f.in.Close() // the copy may be in the middle of a write that nothing reads
		said := strings.TrimSpace(<-f.heard)
		var sent error
		select {
		case sent = <-f.sent:
		default: // the stream is still being read: the program did not want all of it
		}
		switch {
		case err != nil:
			f.ended = err
		case state.Success():
			f.ended = io.EOF
		case sent != nil && !errors.Is(sent, syscall.EPIPE):
			f.ended = sent // what the stream itself said
		case said != "":
			f.ended = errors.New(said)
		default:
			f.ended = fmt.Errorf("%s ended with %s", f.name, state)
		}
	})
	return f.ended
}

// Close implements io.Closer.
func (f *filter) Close() error {
	_ = f.child.Kill() // it may have ended
	err := errors.Join(f.out.Close(), f.words.Close())
	_ = f.end() // was read, or is not wanted
	return err
}
