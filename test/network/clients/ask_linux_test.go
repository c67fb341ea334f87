package clients_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// user is a human at a terminal on which litterbox runs.
type user struct {
	t        *testing.T
	cmd      *exec.Cmd
	terminal io.ReadWriteCloser
	shown    chan []byte
	screen   bytes.Buffer
	seen     int // of the screen
}

// onTerminal starts litterbox on a terminal.
func onTerminal(t *testing.T, h *program.Host, args ...string) *user {
	t.Helper()
	return onTerminalOf(t, h, pty.Winsize{Rows: 30, Cols: 200}, args...)
}

func onTerminalOf(t *testing.T, h *program.Host, size pty.Winsize, args ...string) *user {
	t.Helper()
	u := &user{t: t, cmd: exec.Command(h.Program("litterbox"), args...), shown: make(chan []byte)}
	u.cmd.Dir, u.cmd.Env = h.Repo, append(h.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(u.cmd, &size)
	if err != nil {
		t.Fatal(err)
	}
	u.terminal = terminal
	t.Cleanup(func() {
		_ = u.cmd.Process.Kill() // it has ended long ago, unless the test failed
		_ = terminal.Close()
	})
	go func() {
		defer close(u.shown)
		for {
			b := make([]byte, 4096)
			n, err := terminal.Read(b)
			if n > 0 {
				u.shown <- b[:n]
			}
			if err != nil {
				return // EIO: no process holds the other end anymore
			}
		}
	}()
	return u
}

const userPatience = 2 * time.Minute

// sees waits until the terminal shows text, after what was seen before.
func (u *user) sees(text string) {
	u.t.Helper()
	timeout := time.After(userPatience)
	for {
		if i := strings.Index(u.screen.String()[u.seen:], text); i >= 0 {
			u.seen += i + len(text)
			return
		}
		select {
		case b, open := <-u.shown:
			if !open {
				u.t.Fatalf("the terminal ended before it showed %q; it showed:\n%s", text, u.screen.String())
			}
			u.screen.Write(b)
		case <-timeout:
			u.t.Fatalf("the terminal never showed %q, but:\n%s", text, u.screen.String())
		}
	}
}

func (u *user) types(keys string) {
	u.t.Helper()
	if _, err := io.WriteString(u.terminal, keys); err != nil {
		u.t.Fatal(err)
	}
}

// leaves waits for the end, and returns everything that was shown and the code.
func (u *user) leaves() (string, int) {
	u.t.Helper()
	timeout := time.After(userPatience)
	for {
		select {
		case b, open := <-u.shown:
			if !open {
				_ = u.cmd.Wait() // the code says how
				return u.screen.String(), u.cmd.ProcessState.ExitCode()
			}
			u.screen.Write(b)
		case <-timeout:
			u.t.Fatalf("it never ended, and showed:\n%s", u.screen.String())
		}
	}
}

// asked counts the questions on a screen.
func asked(screen string) int { return strings.Count(screen, "which no rule allows") }

// reaches reports whether box reaches a host, with no human to ask.
func reaches(h *program.Host, host *world.Host) bool {
	return h.Inside("box", "curl", "-sS", "-m", "20", "http://"+host.Name+"/").Code == 0
}

func askHost(t *testing.T, name string) *world.Host {
	t.Helper()
	host := outside.Host(name + ".ask.example")
	webSite(t, host, protocol())
	return host
}

func TestAskOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := askHost(t, "once"), askHost(t, "not-now")
	h.Must("create", "box")
	u := onTerminal(t, h, "exec", "--ask", "box", "--no-commit", "--", "sh", "-c",
		"curl -sS http://"+one.Name+"/; curl -sS http://"+one.Name+"/; curl -sS http://"+two.Name+"/; curl -sS http://"+two.Name+"/; echo over")
	u.sees("curl (")
	u.sees("wants to reach " + one.Name + ":80")
	u.sees("Return refuses: ")
	u.types("x\r") // no answer
	u.sees("nothing? ")
	u.types("o\r")
	u.sees("wants to reach " + two.Name + ":80")
	u.sees("Return refuses: ")
	u.types("\r")
	u.sees("over")
	screen, code := u.leaves()
	if code != 0 || asked(screen) != 2 {
		t.Errorf("it exited %d after %d questions:\n%s", code, asked(screen), screen)
	}
	if got := strings.Count(screen, "HTTP/1.1 GET"); got != 2 {
		t.Errorf("%d of 2 answers of what was allowed:\n%s", got, screen)
	}
	if reaches(h, one) || reaches(h, two) {
		t.Error("what was allowed once is allowed for ever")
	}
	if _, port := revision(t, h); port != 1 {
		t.Errorf("revision %d", port)
	}
}

// revision returns the deny list and the revision in force.
func revision(t *testing.T, h *program.Host) (deny []string, number int) {
	t.Helper()
	var view struct {
		Revision int
		Deny     []struct{ Rule string }
	}
	if err := json.Unmarshal([]byte(h.Must("network", "box", "--json")), &view); err != nil {
		t.Fatal(err)
	}
	for _, rule := range view.Deny {
		deny = append(deny, rule.Rule)
	}
	return deny, view.Revision
}

// Several attempts at once are asked about one after the other, and each answer
// holds for as long as it says.
func TestAskForLonger(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	hosts := map[string]*world.Host{"sandbox": askHost(t, "sandbox"), "repository": askHost(t, "repository"), "never": askHost(t, "never")}
	h.Put(h.Repo+"/.litterbox.toml", "# kept\n[network]\nallow = [\"kept.example\"]\n")
	h.Must("trust")
	h.Must("create", "box")
	script := ""
	for _, host := range hosts {
		script += "curl -sS -m 100 http://" + host.Name + "/ & "
	}
	command := []string{"exec", "--ask", "box", "--no-commit", "--", "sh", "-c", script + "wait; echo over"}
	u := onTerminal(t, h, command...)
	for range hosts {
		u.sees("wants to reach ")
		u.sees("Return refuses: ")
		question := u.screen.String()[:u.seen]
		question = question[strings.LastIndex(question, "wants to reach "):]
		for answer, host := range hosts {
			if strings.Contains(question, host.Name) {
				u.types(answer[:1] + "\r")
			}
		}
	}
	u.sees("over")
	if screen, _ := u.leaves(); asked(screen) != 3 {
		t.Errorf("%d questions:\n%s", asked(screen), screen)
	}
	for answer, host := range hosts {
		if got := reaches(h, host); got == (answer == "never") {
			t.Errorf("after %q it is reached: %v", answer, got)
		}
	}
	if deny, number := revision(t, h); !slices.Equal(deny, []string{hosts["never"].Name}) || number != 4 {
		t.Errorf("revision %d denies %q", number, deny)
	}
	saved := h.Shell("cat .litterbox.toml").Stdout
	if !strings.HasPrefix(saved, "# kept\n") || !strings.Contains(saved, hosts["repository"].Name) || strings.Contains(saved, hosts["sandbox"].Name) {
		t.Errorf("the configuration is now:\n%s", saved)
	}
	// It was trusted, and a human has typed the difference.
	h.Must("create", "other")
	if got := h.Inside("other", "curl", "-sS", "-m", "20", "http://"+hosts["repository"].Name+"/"); got.Code != 0 {
		t.Errorf("a sandbox to come does not reach it: %s", got.Stderr)
	}
	// Never is never.
	if screen, _ := onTerminal(t, h, command...).leaves(); asked(screen) != 0 {
		t.Errorf("it was asked again:\n%s", screen)
	}
}

// Over a program that has the whole screen the question takes two lines, which
// it gives back; the keys before and after it are the program's.
func TestAskOverAFullScreen(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	host := askHost(t, "screen")
	h.Must("create", "box")
	// Redrawing may come late; a program in the foreground would hold it up.
	script := `printf '\033[?1049h'; trap 'echo drawn anew' WINCH; stty -icanon -echo; echo begun; head -c 1 >/tmp/before; ` +
		`curl -sS http://` + host.Name + `/; until IFS= read -rN 1 -t 0.2 after; do :; done; printf '\033[?1049l'; cat /tmp/before; echo "$after"; stty size; echo over`
	u := onTerminal(t, h, "exec", "--ask", "box", "--no-commit", "--", "bash", "-c", script)
	u.sees("begun")
	u.types("a")
	u.sees("\x1b7\x1b[29;1H\x1b[2Klitterbox: curl (")
	u.sees("\x1b[30;1H\x1b[2K")
	u.sees("allow ")
	u.sees("Return refuses: ")
	u.types("\x1b[A") // an arrow is not an answer
	u.types("once\r")
	u.sees("\x1b[29;1H\x1b[2K\x1b[30;1H\x1b[2K\x1b8")
	u.sees("HTTP/1.1 GET")
	u.sees("drawn anew")
	u.types("b")
	u.sees("ab")
	u.sees("30 200")
	u.sees("over")
	if screen, code := u.leaves(); code != 0 {
		t.Errorf("it exited %d:\n%s", code, screen)
	}
}

// On a narrow screen the head of a host goes and its end stays. Keys typed as
// the question comes up answer nothing.
func TestAskOverANarrowScreen(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	host := askHost(t, strings.Repeat("github.com.", 12)+"narrow")
	h.Must("create", "box")
	u := onTerminalOf(t, h, pty.Winsize{Rows: 6, Cols: 40}, "exec", "--ask", "box", "--no-commit", "--", "bash", "-c",
		`printf '\033[?1049h'; stty -icanon -echo; echo begun; curl -sS http://`+host.Name+`/; printf '\033[?1049l'; echo over`)
	u.sees("begun")
	u.sees("\x1b7") // the question is being drawn, and offers no answer yet
	u.types("s\rs\r")
	u.sees("Return to refuse: ")
	drawn := regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]").ReplaceAllString(u.screen.String()[:u.seen], "")
	if !strings.Contains(drawn, "narrow.ask.example:80") || !strings.Contains(drawn, "o, s, r, n, d or ") {
		t.Errorf("the question hides what it is about: %q", drawn)
	}
	u.types("\r")
	u.sees("over")
	if screen, _ := u.leaves(); asked(screen) > 1 || strings.Contains(screen, "HTTP/1.1 GET") {
		t.Errorf("it was reached:\n%q", screen)
	}
	if _, number := revision(t, h); number != 1 {
		t.Errorf("what was typed before the question made revision %d", number)
	}
}

// One answer ends all questions of a command, however many wait.
func TestAskNoMore(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	host := askHost(t, "flood")
	h.Must("create", "box")
	u := onTerminal(t, h, "exec", "--ask", "box", "--no-commit", "--", "bash", "-c",
		`for i in {1..100}; do curl -sS -m 100 http://`+host.Name+`:$((9000+i))/ & done; wait; curl -sS http://more.`+host.Name+`/; echo over`)
	u.sees("Return refuses: ")
	u.types("d\r")
	u.sees("over")
	if screen, _ := u.leaves(); asked(screen) != 1 {
		t.Errorf("%d questions:\n%s", asked(screen), screen)
	}
	if reaches(h, host) {
		t.Error("it is reached")
	}
}

// A terminal that is gone answers nothing: connections that wait for it are
// refused, and what it allowed has ended.
func TestAskerDies(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	host, allowed := askHost(t, "dies"), askHost(t, "lived")
	h.Must("create", "box")
	u := onTerminal(t, h, "exec", "--ask", "box", "--no-commit", "--", "sh", "-c", "curl -sS http://"+allowed.Name+"/; sleep 600")
	u.sees("Return refuses: ")
	u.types("o\r")
	u.sees("HTTP/1.1 GET")
	if !reaches(h, allowed) {
		t.Error("it is not reached while it is allowed")
	}
	waiting := make(chan bool)
	go func() { waiting <- reaches(h, host) }()
	u.sees("wants to reach " + host.Name)
	if err := u.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if <-waiting {
		t.Error("it was reached without an answer")
	}
	if reaches(h, allowed) {
		t.Error("what a dead client allowed is still allowed")
	}
	if h.Inside("box", "getent", "hosts", "other.ask.example").Code == 0 {
		t.Error("a name still resolves for nobody")
	}
}

func TestAskNeedsATerminal(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.Must("create", "box")
	for _, args := range [][]string{{"exec", "--ask", "box", "--", "true"}, {"shell", "--ask", "box"}, {"run", "--ask", "new", "--", "true"}} {
		got := h.Litterbox(args...)
		if got.Code == 0 || !strings.Contains(got.Stderr, "cannot ask about the network") || got.Stdout != "" {
			t.Errorf("%q: %d %s%s", args, got.Code, got.Stdout, got.Stderr)
		}
	}
	if got := h.Litterbox("status", "new"); got.Code == 0 {
		t.Error("the sandbox was made before that was noticed")
	}
}
