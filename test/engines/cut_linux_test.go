package engines_test

import (
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/engine"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// between stands between litterbox and an engine, and cuts the connections through it.
type between struct {
	testing.TB
	path, engine string

	mu    sync.Mutex
	conns map[net.Conn]bool
	left  int // bytes towards the engine before everything is cut; below zero: no end
}

// newBetween listens beside the engine's socket.
func newBetween(t testing.TB, e *engine.Engine) *between {
	t.Helper()
	b := &between{TB: t, path: filepath.Join(e.Dir, "between.sock"), engine: strings.TrimPrefix(e.Address, "unix://"), conns: map[net.Conn]bool{}, left: -1}
	listener, err := net.Listen("unix", b.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close()
		b.cut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
	return b
}

func (b *between) serve(conn net.Conn) {
	far, err := net.Dial("unix", b.engine)
	if err != nil {
		_ = conn.Close()
		return
	}
	b.mu.Lock()
	b.conns[conn], b.conns[far] = true, true
	b.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { b.copy(conn, far, false) })
	both.Go(func() { b.copy(far, conn, true) })
	both.Wait()
	b.mu.Lock()
	delete(b.conns, conn)
	delete(b.conns, far)
	b.mu.Unlock()
	_, _ = conn.Close(), far.Close()
}

// copy carries one direction, and its end.
func (b *between) copy(to, from net.Conn, counted bool) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if counted && !b.spend(n) {
			b.cut()
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if err != nil {
			if err == io.EOF {
				_ = to.(*net.UnixConn).CloseWrite()
			}
			return
		}
	}
}

// spend counts bytes, and reports whether they may pass.
func (b *between) spend(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 0 {
		return true
	}
	b.left -= n
	if b.left >= 0 {
		return true
	}
	b.left = -1 // once
	return false
}

// after cuts everything once that many more bytes have gone to the engine.
func (b *between) after(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = n
}

// pending reports whether the cut is still to come, and takes it back.
func (b *between) pending() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.left >= 0
	b.left = -1
	return was
}

// cut ends every connection, and says how many there were.
func (b *between) cut() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.conns {
		_ = conn.Close()
	}
	return len(b.conns)
}

// patience bounds how long a sandbox that was cut off may take to come back.
const patience = 2 * time.Minute

// back runs a command in a sandbox that may just be unreachable, and commits.
func back(h *program.Host, argv ...string) program.Result {
	h.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		got := h.Litterbox(append([]string{"exec", "box", "--"}, argv...)...)
		if got.Code == 0 {
			return got
		}
		if time.Now().After(end) {
			h.Fatalf("it does not come back: %+v", got)
		}
	}
}

// The connections to the engine are cut in the middle of a command, and after a
// number of bytes: everything written is on the branch, once each.
func TestCutEngine(t *testing.T) {
	whole(t)
	e := docker(t, nil)
	b := newBetween(t, e.Engine)
	h := e.host(engine.Shell).With("DOCKER_HOST=unix://" + b.path)
	h.Must("create", "box")
	once := func(file string) {
		t.Helper()
		if commits := strings.Fields(h.Git("log", "--format=%H", "box", "--", file)); len(commits) != 1 {
			t.Errorf("%s was committed by %q, want one commit", file, commits)
		}
	}

	cmd := exec.Command(h.Program("litterbox"), "exec", "box", "--", "sh", "-c", "echo early >early; echo begun; sleep 600")
	cmd.Dir, cmd.Env = h.Repo, h.Env
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	if b.cut() == 0 {
		t.Fatal("there was no connection to cut: the test shows nothing")
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 125 {
		t.Errorf("the command that was cut off ended with %v", err)
	}
	e.want(back(h, "cat", "early").Stdout, "^early$")
	once("early")

	cuts, sent, written := 0, 0, 0
	for _, bytes := range []int{1, 100, 400, 1000, 2000, 4000, 6000, 8000, 12_000, 16_000, 24_000, 48_000} {
		file := "after-" + strconv.Itoa(bytes)
		b.after(bytes)
		h.InsideShell("box", "echo x >"+file) // it may fail
		sent++
		if !b.pending() {
			cuts++
		}
		inside := strings.Fields(back(h, "ls").Stdout)
		committed := strings.Fields(h.Git("ls-tree", "--name-only", "box"))
		if strings.Join(inside, " ") != strings.Join(committed, " ") {
			t.Errorf("cut after %d bytes: inside are %q, committed are %q", bytes, inside, committed)
		}
		if slices.Contains(inside, file) {
			written++
			once(file)
		}
	}
	t.Logf("%d of %d commands were cut, %d have written", cuts, sent, written)
	if cuts < 3 || written < 3 {
		t.Error("the test shows little")
	}
	h.Must("delete", "--force", "--purge", "box")
}
