package attack_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/creack/pty"
)

// terminalAttacks target the human's terminal.
func terminalAttacks() []attack {
	return []attack{
		{
			Name: "type into the human's shell",
			Control: func(w *world) {
				if allowed, _ := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti"); strings.TrimSpace(string(allowed)) == "0" && os.Getuid() != 0 {
					w.Skip("this kernel refuses TIOCSTI to everybody (dev.tty.legacy_tiocsti = 0)")
				}
				s := w.shellOnTerminal()
				s.run(fmt.Sprintf("%s types 'touch %s/typed\n'", w.Program("probe"), w.Canary))
				s.run("true")
				if names := w.touched(); len(names) != 1 {
					w.Fatalf("typing into a shell's terminal does nothing outside either: %q\n%s", names, s.seen.String())
				}
			},
			Run: func(w *world) {
				w.sandbox()
				at := w.scratch() + "/probe"
				w.Must("cp", w.Program("probe"), box+":"+at)
				s := w.shellOnTerminal()
				for _, command := range []string{"exec " + box + " --no-commit -- ", "exec " + box + " --no-commit </dev/null -- ", "shell " + box + " -- "} {
					s.run(fmt.Sprintf("%s %s %s types 'touch %s/typed\n'", w.Program("litterbox"), command, at, w.Canary))
					s.run("true")
				}
				// Also through a file descriptor that the sandbox would have inherited.
				s.run(fmt.Sprintf("%s exec %s --no-commit -- /bin/sh -c 'for fd in 3 4 5 6 7 8 9; do %s types \"touch %s/typed\n\" <&$fd; done' 3<>/dev/tty", w.Program("litterbox"), box, at, w.Canary))
				s.run("true")
				w.wantUntouched("typing into the terminal")
				if !strings.Contains(s.seen.String(), `"stdin":"EPERM"`) {
					w.Errorf("the probe did not even try:\n%s", s.seen.String())
				}
			},
		},
		{
			Name: "steer the terminal from a listing",
			Control: func(w *world) {
				w.Shell("git commit -q --allow-empty -m '" + steering + "'")
				if got := w.Git("log", "--format=%s", "-1"); !steers(got) {
					w.Fatalf("an escape sequence in a message is not noticed: %q", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				w.InsideShell(box, "echo x > f; git add f; git -c user.name='"+steering+"' commit -q -m '"+steering+"'")
				got := w.InsideShell(box, "cp /bin/sleep '"+w.scratch()+"/"+strings.ReplaceAll(steering, "/", "")+"'; "+
					"'"+w.scratch()+"/"+strings.ReplaceAll(steering, "/", "")+"' 300 >/dev/null 2>&1 & mkfifo 'pipe"+strings.ReplaceAll(steering, "/", "")+"'; chmod 0 f; printf '"+steering+"' > 'g"+strings.ReplaceAll(steering, "/", "")+"'")
				if !strings.Contains(got.Stderr, "stays out") {
					w.Errorf("there was no note to look at: %q", got.Stderr)
				}
				if steers(got.Stderr) {
					w.Errorf("a note steers the terminal: %q", got.Stderr)
				}
				for _, command := range [][]string{{"log", box}, {"list"}, {"list", "--all"}, {"status", box}, {"status"}, {"diff", box, "--stat"}, {"delete", box}} {
					got := w.Litterbox(command...)
					if steers(got.Stdout) || steers(got.Stderr) {
						w.Errorf("litterbox %q steers the terminal:\n%q\n%q", command, got.Stdout, got.Stderr)
					}
				}
				if got := w.Must("status", box); !strings.Contains(got, "sleep") && !strings.Contains(got, "evil") {
					w.Errorf("the process with the hostile name is not listed:\n%s", got)
				}
			},
		},
	}
}

// steering sets a window's title, clears the screen, asks for an answer, opens
// an 8-bit sequence, and turns the reading order around.
const steering = "evil\x1b]0;owned\x07\x1b[2J\x1b[6n\u009b31m\u202e"

// steers reports whether a terminal would act on text.
func steers(text string) bool {
	if !utf8.ValidString(text) {
		return true
	}
	return strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	})
}

// terminalShell is a shell that reads its commands from a terminal, as the
// human's does.
type terminalShell struct {
	w        *world
	terminal *os.File
	lines    chan string
	seen     strings.Builder
	count    int
}

func (w *world) shellOnTerminal() *terminalShell {
	w.Helper()
	cmd := exec.Command("/bin/sh", "-i")
	cmd.Dir, cmd.Env = w.Repo, append(w.Env, "PS1=", "PS2=", "ENV=")
	terminal, err := pty.Start(cmd)
	if err != nil {
		w.Fatal(err)
	}
	s := &terminalShell{w: w, terminal: terminal, lines: make(chan string, 1000)}
	go func() {
		defer close(s.lines)
		for reader := bufio.NewReader(terminal); ; {
			line, err := reader.ReadString('\n')
			s.lines <- line
			if err != nil {
				return
			}
		}
	}()
	w.Cleanup(func() {
		_ = terminal.Close() // hangs up
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return s
}

// run types a command and waits for its end.
func (s *terminalShell) run(command string) {
	s.w.Helper()
	s.count++
	marker := fmt.Sprintf("ended-%d-%d", s.count, os.Getpid())
	// Not as the typed text has it, which the terminal echoes.
	if _, err := io.WriteString(s.terminal, command+"; echo ended-\"\"$(("+fmt.Sprint(s.count)+"))-"+fmt.Sprint(os.Getpid())+"\n"); err != nil {
		s.w.Fatal(err)
	}
	timeout := time.After(time.Minute)
	for {
		select {
		case line, ok := <-s.lines:
			s.seen.WriteString(line)
			if strings.Contains(line, marker) {
				return
			}
			if !ok {
				s.w.Fatalf("the shell ended:\n%s", s.seen.String())
			}
		case <-timeout:
			s.w.Fatalf("%q did not end:\n%s", command, s.seen.String())
		}
	}
}
