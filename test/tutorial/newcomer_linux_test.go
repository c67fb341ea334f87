package tutorial

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// TestNewcomer is a new user's first session in a real terminal:
// testdata/newcomer.txt has what must be shown after each command.
func TestNewcomer(t *testing.T) {
	if os.Getenv("LITTERBOX_TEST_TUTORIALS") == "" {
		t.Skip("it is typed into a terminal: make test-tutorials, or LITTERBOX_TEST_TUTORIALS=1")
	}
	program.Need(t, "tmux", "bash")
	h := built.New(t)
	h.Env = append(h.Env, "PATH="+filepath.Dir(h.Program("litterbox"))+":"+os.Getenv("PATH"),
		"SHELL=/bin/bash", "GIT_PAGER=cat", "LESS=FRX")
	term := newTerminal(h, h.Repo)
	var page strings.Builder
	show := func(pane string) {
		pane = strings.ReplaceAll(pane, h.Repo, "PROJECT")
		page.WriteString(normal(pane) + "\n" + strings.Repeat("-", 72) + "\n")
	}
	run := func(commands ...string) {
		t.Helper()
		for _, command := range commands {
			show(term.run(command))
		}
	}

	run(
		`litterbox create "Fix login"`,
		`litterbox exec fix-login -m "Begin a list" -- sh -c 'echo milk >list.txt; cat src/main.txt'`,
		`litterbox exec fix-login --no-commit -- bash -c 'exec 2>/dev/null 3<>/dev/tcp/example.com/443'`,
	)
	// A shell: its output and its exit.
	term.prompts++
	term.keys("C-l")
	inside := `[^\n]*\$`
	term.enter("litterbox shell fix-login", regexp.MustCompile(`(?s)litterbox shell fix-login\n.*\$$`))
	term.enter("cat list.txt", regexp.MustCompile(`\nmilk\n`+inside+`$`))
	term.enter("echo bread >>list.txt; git status --short", regexp.MustCompile(`\n.*list\.txt\n`+inside+`$`))
	show(term.enter("exit", term.prompted()))
	run(
		`litterbox list`,
		`litterbox log fix-login`,
		`litterbox diff fix-login --stat`,
		// Mistakes.
		`litterbox status fix-lgoin`,
		`litterbox rm fix-login`,
		`litterbox ps`,
		`litterbox help nothing`,
		`litterbox run -- pwd`,
		`litterbox create "Fix login"`,
		// The end.
		`litterbox merge fix-login`,
		`cat list.txt; git status --short; git log --format=%s`,
		`litterbox list; litterbox trash list`,
		// Questions come before running code on this machine, and before losing work.
		`litterbox create tasks`,
		`litterbox exec tasks -m "Add a task" -- sh -c 'mkdir .vscode && echo "{}" >.vscode/tasks.json'`,
	)
	asks := regexp.MustCompile(`\?[^\n]*$`)
	term.prompts++
	term.keys("C-l")
	term.enter("litterbox merge tasks", asks)
	show(term.enter("n", term.prompted()))
	term.prompts++
	term.keys("C-l")
	term.enter("litterbox delete tasks", asks)
	show(term.enter("y", term.prompted()))
	run(
		`litterbox trash restore tasks`,
		`litterbox list`,
	)
	program.Page(t, filepath.Join("testdata", "newcomer.txt"), page.String(), *update)
}

// normal returns a pane without what differs each time and without numbers in
// its prompts.
func normal(pane string) string {
	pane = regexp.MustCompile(`(?m)^\[[0-9]+\] \$`).ReplaceAllString(pane, "$$")
	pane = regexp.MustCompile(`\b([0-9]+h)?[0-9]+m[0-9]+s\b`).ReplaceAllString(pane, "1s")
	// Which limits can be kept differs between machines.
	pane = regexp.MustCompile(`(?m)^(\S+ +(?:running|stopped) .* none +)\S.*?( +(?:[0-9]+ *[smh]|just))`).ReplaceAllString(pane, "${1}LIMITS$2")
	return strings.Join(lines(pane), "\n")
}
