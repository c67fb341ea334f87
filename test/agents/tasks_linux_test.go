package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/tasks"
)

// bill is what the sixteen steps took in one client.
type bill struct {
	client, version string
	calls, requests int
	bytes           map[string]int // of calls and answers, by task
	described       int            // bytes of the tools in each request
}

// Each client takes its model through three tasks in sixteen steps: every step
// succeeds at the first call, the model reads what litterbox answered, and the
// branch holds the work. The page says what each client's model pays for it.
func TestTasksInRealClients(t *testing.T) {
	dir := installed(t)
	var bills []bill
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) { bills = append(bills, c.sixteen(t, dir)) })
	}
	if t.Failed() || len(bills) < len(clients) {
		return // -run chose some of them
	}
	page := tasksPage(bills)
	t.Log("\n" + page)
	if err := os.WriteFile("../../docs/reference/tools-clients.md", []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c client) sixteen(t *testing.T, dir string) bill {
	h := built.New(t)
	tasks.Project(h)
	steps := tasks.Sixteen()
	var script []call
	for _, s := range steps {
		script = append(script, call{s.Ours.Tool, s.Ours.Args})
	}
	m := newModel(t, script...)
	env := c.prepare(h, m)
	h.Must("agent", "install", c.name, "--exclusive")
	out := c.run(t, h, dir, env)
	if len(m.results) != len(steps) {
		t.Fatalf("it took %d of %d steps\noffered: %q\nresults: %q\nstrange: %q\n%s", len(m.results), len(steps), m.offered, m.results, m.strange, out)
	}
	paid := bill{
		client: c.name, version: c.version(t, dir), calls: len(m.results), requests: m.requests,
		bytes: map[string]int{}, described: m.described,
	}
	for i, s := range steps {
		paid.bytes[s.Task] += len(text(s.Ours.Args)) + len(m.results[i])
		if answer := m.results[i]; !strings.Contains(answer, s.Says) || strings.Contains(answer, "exit 1") != s.Fails || strings.Contains(answer, "kind: ") {
			t.Errorf("step %d, %s %v: %s", i+1, s.Ours.Tool, s.Ours.Args, answer)
		}
	}
	if lacks := tasks.Check(h); lacks != "" {
		t.Error(lacks)
	}
	if got := h.Git("log", "--format=%s", "main.."+tasks.Sandbox); got != "Listen on a free port, and say uno\nDouble numbers" {
		t.Errorf("the branch has the commits %q", got)
	}
	if got := h.Git("status", "--short", "--", "*.py"); got != "" {
		t.Errorf("the checkout has changed: %s", got)
	}
	return paid
}

// version returns the client's own, as npm installed it.
func (c client) version(t *testing.T, dir string) string {
	t.Helper()
	var about struct{ Version string }
	content, err := os.ReadFile(filepath.Join(dir, "node_modules", c.module, "package.json"))
	if err == nil {
		err = json.Unmarshal(content, &about)
	}
	if err != nil {
		t.Fatal(err)
	}
	return about.Version
}

func tasksPage(bills []bill) string {
	var b strings.Builder
	b.WriteString(`# The same tasks in real clients

<!-- Made by: make test-agents -->

Three tasks in sixteen steps ([the same](tools-beside.md) as beside other tools), each step one call. A scripted model makes the calls through the real client, headless, after ` + "`litterbox agent install NAME --exclusive`" + `. Every call was understood at once, and the branch held the work. Bytes are what the model writes as arguments and what its client gives it as answers, in the client's own wrapping; the last column is how the client describes litterbox's tools in each request.

| client | version | steps | calls | requests to the model |`)
	var names []string
	for _, s := range tasks.Sixteen() {
		if len(names) == 0 || names[len(names)-1] != s.Task {
			names = append(names, s.Task)
		}
	}
	for _, name := range names {
		fmt.Fprintf(&b, " bytes: %s |", name)
	}
	b.WriteString(" bytes of all | bytes of the tools |\n" + strings.Repeat("|---", 7+len(names)) + "|\n")
	for _, one := range bills {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d |", one.client, one.version, len(tasks.Sixteen()), one.calls, one.requests)
		all := 0
		for _, name := range names {
			fmt.Fprintf(&b, " %d |", one.bytes[name])
			all += one.bytes[name]
		}
		fmt.Fprintf(&b, " %d | %d |\n", all, one.described)
	}
	b.WriteString("\nRequests are one more than calls: after the last answer the model says that it is done.\n")
	return b.String()
}
