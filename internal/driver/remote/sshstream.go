package remote

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// arguments returns ssh's arguments before the command. The user's configuration
// counts; anything that would ask, forward or need a terminal is off, as no one
// sits there.
func (h *SSH) arguments() []string {
	args := []string{
		"-T", "-x", "-a",
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3",
		"-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no", "-o", "RemoteCommand=none", "-o", "RequestTTY=no", "-o", "LogLevel=ERROR",
	}
	if h.Config != "" {
		// An ssh that becomes a master stays, and holds ssh's output to us.
		args = append(args, "-F", h.Config, "-o", "ControlMaster=no")
	}
	if h.Machine.Port != 0 {
		args = append(args, "-p", strconv.Itoa(h.Machine.Port))
	}
	if h.Machine.Identity != "" {
		args = append(args, "-i", h.Machine.Identity, "-o", "IdentitiesOnly=yes")
	}
	return append(args, "--", h.Machine.Host)
}

// start runs a script of sh on the host and waits for one of the words.
func (h *SSH) start(ctx context.Context, script string, words ...string) (*sshStream, string, error) {
	shell := "exec sh -c "
	if h.Sudo {
		shell = "exec sudo -n -- sh -c "
	}
	cmd := exec.Command("ssh", append(h.arguments(), shell+quoted(script))...)
	cmd.Env, cmd.Dir = h.Env, "/"
	cmd.Path, cmd.Err = lookPath("ssh", h.Env)
	detach(cmd)
	s := &sshStream{cmd: cmd, done: make(chan struct{})}
	cmd.Stderr, cmd.WaitDelay = &s.said, time.Second // a process that ssh leaves behind may hold it
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, "", driver.Joined(driver.ErrUnreachable, err)
	}
	// A pipe of our own: os/exec's ends with Wait, whether it was read or not.
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, "", driver.Joined(driver.ErrUnreachable, err)
	}
	cmd.Stdout = writer
	err = cmd.Start()
	if err = errors.Join(err, writer.Close()); err != nil {
		err = errors.Join(err, reader.Close(), s.stdin.Close())
		return nil, "", fault.Wrap("", driver.Joined(driver.ErrUnreachable, err), "cannot start ssh").WithHint("apt-get install openssh-client")
	}
	s.stdout, s.lines = reader, bufio.NewReaderSize(reader, 32<<10)
	go func() {
		_ = cmd.Wait() // its standard error says how it ended
		close(s.done)
	}()
	said, err := s.await(ctx, words...)
	if ctx.Err() != nil {
		return nil, "", errors.Join(fault.Wrap(fault.Canceled, ctx.Err(), "cannot reach the machine %q", h.Machine.Name), s.Close())
	}
	if err != nil {
		return nil, "", h.failed(s, "cannot reach the machine %q", h.Machine.Name)
	}
	return s, said[len(said)-1], nil
}

// lookPath finds a program by the PATH of an environment.
func lookPath(name string, env []string) (string, error) {
	for _, entry := range slices.Backward(env) {
		list, is := strings.CutPrefix(entry, "PATH=")
		if !is {
			continue
		}
		for dir := range strings.SplitSeq(list, ":") {
			if !strings.HasPrefix(dir, "/") {
				continue // never the current directory
			}
			if found, err := exec.LookPath(dir + "/" + name); err == nil {
				return found, nil
			}
		}
		break
	}
	return exec.LookPath("/usr/bin/" + name)
}

// sshStream is ssh with a script that runs on the host.
type sshStream struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	lines  *bufio.Reader
	said   tail
	done   chan struct{}
	once   sync.Once
}

// maxNoise bounds how much a host's shell may print before the awaited word.
const maxNoise = 64 << 10

// await reads lines up to one of the words, and returns them all, with the word.
func (s *sshStream) await(ctx context.Context, words ...string) ([]string, error) {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	var said []string
	for left := maxNoise; left > 0; {
		line, err := s.lines.ReadSlice('\n')
		if left -= len(line); err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if ctx.Err() != nil {
				return said, ctx.Err()
			}
			return said, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		said = append(said, text)
		if slices.Contains(words, text) {
			return said, nil
		}
	}
	return said, errors.New("the host prints too much")
}

func (s *sshStream) Read(p []byte) (int, error)  { return s.lines.Read(p) }
func (s *sshStream) Write(p []byte) (int, error) { return s.stdin.Write(p) }
func (s *sshStream) CloseWrite() error           { return s.stdin.Close() }

// Close ends ssh, from any goroutine, and waits for it. The end of its streams
// ends it: it may be the master of connections that others share.
func (s *sshStream) Close() error {
	s.once.Do(func() {
		_, _ = s.stdin.Close(), s.stdout.Close() // it may have ended
		for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
			select {
			case <-s.done:
				return
			case <-time.After(endsWithin):
				_ = s.cmd.Process.Signal(signal) // it may have ended
			}
		}
		<-s.done
	})
	return nil
}

// endsWithin is how long ssh may take to end in each way.
const endsWithin = 3 * time.Second

// tail keeps the end of what ssh says. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text = append(t.text, p...); len(t.text) > maxTail {
		t.text = t.text[len(t.text)-maxTail:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
