package program

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Terminal is one of the test's own, on which litterbox runs. It answers the
// questions that full-screen programs ask a terminal, and keeps what it was shown.
type Terminal struct {
	t    testing.TB
	file *os.File
	cmd  *exec.Cmd
	over chan struct{} // closed once nothing more is shown

	mu      sync.Mutex
	shown   []byte
	changed chan struct{} // closed when more was shown
}

// OnTerminal runs litterbox on a terminal of that size.
func (h *Host) OnTerminal(rows, cols uint16, args ...string) *Terminal {
	h.Helper()
	cmd := exec.Command(h.Program("litterbox"), args...)
	cmd.Dir = h.Repo
	for _, v := range h.Env {
		if !strings.HasPrefix(v, "TERM=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "COLORTERM=truecolor")
	started, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: cols})
	if err != nil {
		h.Fatal(err)
	}
	file, err := closable(started)
	if err != nil {
		_ = cmd.Process.Kill()
		h.Fatal(err)
	}
	term := &Terminal{t: h.TB, file: file, cmd: cmd, over: make(chan struct{}), changed: make(chan struct{})}
	go term.show()
	h.Cleanup(func() { // one that has ended needs nothing
		_ = file.Close()
		_ = cmd.Process.Kill()
		<-term.over
	})
	return term
}

// closable is the same terminal, whose reader a Close ends: pty leaves it in
// blocking mode, where a Close waits for the reader.
func closable(blocking *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	return os.NewFile(uintptr(fd), blocking.Name()), errors.Join(err, blocking.Close())
}

// Resize gives the terminal another size.
func (s *Terminal) Resize(rows, cols uint16) {
	s.t.Helper()
	raw, err := s.file.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) {
			failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// HangUp takes the terminal away, as a lost connection does.
func (s *Terminal) HangUp() {
	s.t.Helper()
	if err := s.file.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// questions are what programs ask a terminal, and an ordinary one's answers:
// where the cursor is, what it can do, its colours and its modes.
var questions = []struct {
	asked  *regexp.Regexp
	answer string
}{
	{regexp.MustCompile(`\x1b\[6n`), "\x1b[1;1R"},
	{regexp.MustCompile(`\x1b\[0?c`), "\x1b[?62;22c"},
	{regexp.MustCompile(`\x1b\]10;\?(\x07|\x1b\\)`), "\x1b]10;rgb:ffff/ffff/ffff\x1b\\"},
	{regexp.MustCompile(`\x1b\]11;\?(\x07|\x1b\\)`), "\x1b]11;rgb:0000/0000/0000\x1b\\"},
}

func (s *Terminal) show() {
	defer close(s.over)
	answered := 0 // how much was searched for questions
	for buffer := make([]byte, 64<<10); ; {
		n, err := s.file.Read(buffer)
		s.mu.Lock()
		s.shown = append(s.shown, buffer[:n]...)
		close(s.changed)
		s.changed = make(chan struct{})
		from := answered
		var answers []byte
		for _, q := range questions {
			for _, at := range q.asked.FindAllIndex(s.shown[from:], -1) {
				answers = append(answers, q.answer...)
				answered = max(answered, from+at[1])
			}
		}
		s.mu.Unlock()
		if err != nil {
			return // EIO: no process has the terminal anymore
		}
		if len(answers) > 0 {
			_, _ = s.file.Write(answers)
		}
	}
}

// sequences matches the sequences that steer a terminal, and blanks: moves of
// the cursor replace those too.
var sequences = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\|\x1b[ -/]*[0-~]|[\x00-\x20]`)

// since returns what was shown after a moment, without sequences and blanks.
func (s *Terminal) since(mark int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(sequences.ReplaceAll(s.shown[mark:], nil))
}

// Shows reports whether a text was shown since that moment.
func (s *Terminal) Shows(mark int, text string) bool {
	return strings.Contains(s.since(mark), strings.ReplaceAll(text, " ", ""))
}

// Mark returns the present moment.
func (s *Terminal) Mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shown)
}

// patience is how long a client may take to show something, even on a slow machine.
const patience = 3 * time.Minute

// Await waits until one of the texts was shown since that moment.
func (s *Terminal) Await(mark int, texts ...string) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		shown := s.since(mark)
		for _, text := range texts {
			if strings.Contains(shown, strings.ReplaceAll(text, " ", "")) {
				return
			}
		}
		select {
		case <-changed:
		case <-s.over:
			// The latest output was looked at or comes with the next turn.
			if shown == s.since(mark) {
				s.t.Fatalf("the terminal ended before it showed %q; it showed:\n%s", texts, s.Tail())
			}
		case <-deadline:
			s.t.Fatalf("the terminal never showed %q, but:\n%s", texts, s.Tail())
		}
	}
}

// Tail returns the end of what was shown, for a message.
func (s *Terminal) Tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	const most = 8 << 10
	shown := regexp.MustCompile(`\x1b\[[0-9;]*[HGdf]`).ReplaceAll(s.shown[max(0, len(s.shown)-most):], []byte("\n"))
	lines := strings.Split(string(regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)`).ReplaceAll(shown, []byte(" "))), "\n")
	var kept []string
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// Type types keys.
func (s *Terminal) Type(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.file, keys); err != nil {
		s.t.Fatalf("cannot type %q: %v\n%s", keys, err, s.Tail())
	}
}

// Returns presses Return until something has happened: a program may take the
// first for the end of a paste, or close a list of suggestions with it.
func (s *Terminal) Returns(happened func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !happened(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("Return changes nothing; the terminal showed:\n%s", s.Tail())
		}
		_, _ = io.WriteString(s.file, "\r") // its end may be what happens
		for range 50 {
			if happened() {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// Over reports whether nothing more is shown.
func (s *Terminal) Over() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// Ends waits for the command's end and returns its exit code.
func (s *Terminal) Ends() int {
	s.t.Helper()
	select {
	case <-s.over:
	case <-time.After(patience):
		s.t.Fatalf("the command on the terminal never ended; it showed:\n%s", s.Tail())
	}
	_ = s.cmd.Wait() // its code is what counts
	return s.cmd.ProcessState.ExitCode()
}

// HasColours reports whether anything was shown in colour.
func (s *Terminal) HasColours() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.shown, []byte("\x1b[38;")) || bytes.Contains(s.shown, []byte(";38;"))
}
