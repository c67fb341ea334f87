package tutorial

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// terminal is a real terminal of 120 columns and 30 rows, which tmux emulates,
// with a shell in it.
type terminal struct {
	*program.Host
	socket  string
	prompts int // how many the shell has shown
}

// terminalConfig leaves the whole window to the shell.
const terminalConfig = `set -g status off
set -g default-terminal screen-256color
set -g remain-on-exit on
set -s escape-time 0
`

// numbered is a prompt with a growing number, so that each command's end differs from
// that of the one before.
const numbered = `[\#] $ `

// newTerminal starts a shell in dir. It ends with the test.
func newTerminal(h *program.Host, dir string) *terminal {
	h.Helper()
	// The path of a socket has at most 107 bytes.
	sockets, err := os.MkdirTemp("", "tmux-")
	if err != nil {
		h.Fatal(err)
	}
	t := &terminal{Host: h, socket: filepath.Join(sockets, "s"), prompts: 1}
	h.Cleanup(func() {
		_, err := t.tmux("kill-server")
		if err := errors.Join(err, os.RemoveAll(sockets)); err != nil {
			h.Errorf("cannot end the terminal: %v", err)
		}
	})
	config := filepath.Join(h.Dir, "tmux.conf")
	h.Put(config, terminalConfig)
	if _, err := t.tmux("-f", config, "new-session", "-d", "-x", "120", "-y", "30", "-c", dir,
		"env", "-u", "TMUX", "-u", "TMUX_PANE", "PS1="+numbered, "bash", "--noprofile", "--norc"); err != nil {
		h.Fatalf("cannot start a terminal: %v", err)
	}
	t.await(t.prompted())
	return t
}

func (t *terminal) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", t.socket}, args...)...)
	cmd.Env = t.Env
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

// prompted matches a pane that ends with the newest prompt of the shell.
func (t *terminal) prompted() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|\n)` + regexp.QuoteMeta(strings.TrimSpace(strings.ReplaceAll(numbered, `\#`, strconv.Itoa(t.prompts)))) + `$`)
}

// run clears the pane, types a command and returns the pane when the shell asks
// for the next one.
func (t *terminal) run(command string) string {
	t.Helper()
	t.prompts++
	t.keys("C-l")
	return t.enter(command, t.prompted())
}

// enter types a line and returns the pane when it matches until.
func (t *terminal) enter(line string, until *regexp.Regexp) string {
	t.Helper()
	if _, err := t.tmux("send-keys", "-l", line); err != nil {
		t.Fatal(err)
	}
	t.keys("Enter")
	return t.await(until)
}

func (t *terminal) keys(names ...string) {
	t.Helper()
	if _, err := t.tmux(append([]string{"send-keys"}, names...)...); err != nil {
		t.Fatal(err)
	}
}

// blank matches the blanks after the lines of a pane, and below them.
var blank = regexp.MustCompile(`(?m) +$|\n+\z`)

// patience bounds each wait.
const patience = 3 * time.Minute

// await returns the pane, without blanks at its end, when it matches until.
// Lines that the terminal has wrapped are one.
func (t *terminal) await(until *regexp.Regexp) string {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		pane, err := t.tmux("capture-pane", "-p", "-J")
		if err != nil {
			t.Fatal(err)
		}
		if pane = blank.ReplaceAllString(pane, ""); until.MatchString(pane) {
			return pane
		}
		if time.Now().After(end) {
			t.Fatalf("the terminal does not show %q, but\n%s", until, pane)
		}
	}
}
