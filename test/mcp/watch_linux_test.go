package mcp_test

import (
	"bufio"
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// activity is the output of watch --json, as a program reads it.
type activity struct {
	Kind    string `json:"kind"`
	Sandbox string `json:"sandbox"`
	Action  string `json:"action"`
	Text    string `json:"text"`
	Outcome string `json:"outcome"`
	Who     struct {
		Via    string `json:"via"`
		Client string `json:"client"`
	} `json:"who"`
	Arguments map[string]any `json:"arguments"`
}

// A human sees what a tool call prints while it runs, in a sandbox that was
// made after the watch began, and who asked for it; secrets they do not see.
func TestWatched(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	watch := command(h, "watch", "--json", "--since", "1h") // however long its start takes
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	seen := make(chan activity, 1000)
	go func() {
		defer close(seen)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var a activity
			if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
				t.Errorf("%s: %v", lines.Text(), err)
			}
			if strings.Contains(lines.Text(), "hunter22") {
				t.Errorf("a secret: %s", lines.Text())
			}
			seen <- a
		}
	}()
	// Reports of calls and output come from two places, so they can be in any order.
	var shown []activity
	until := func(what string, wanted func(activity) bool) {
		t.Helper()
		patience := time.After(time.Minute)
		for !slices.ContainsFunc(shown, wanted) {
			select {
			case a, open := <-seen:
				if !open {
					t.Fatalf("the watch ended before it showed %s", what)
				}
				shown = append(shown, a)
			case <-patience:
				t.Fatalf("%s was not shown", what)
			}
		}
	}
	printed := func(text string) func(activity) bool {
		return func(a activity) bool { return a.Kind == "output" && a.Sandbox == "seen" && a.Text == text }
	}

	c := connect(t, h, sessions)
	c.must("sandbox-create", args{"name": "seen"})
	done := make(chan answer, 1)
	go func() {
		defer close(done)
		done <- c.must("sandbox-exec", args{"message": "Wait", "command": "echo begun; echo DB_PASSWORD=hunter22; until [ -e go ]; do sleep 0.05; done; echo over"})
	}()
	until("who asked", func(a activity) bool {
		return a.Kind == "call" && a.Action == "sandbox-exec" && a.Who.Via == "mcp" && a.Who.Client == "test-agent" && a.Arguments["message"] == "Wait"
	})
	until("the first line", printed("begun"))
	until("the second without its secret", printed("DB_PASSWORD=[redacted]"))
	select {
	case early := <-done:
		t.Fatalf("the call was over before: %s", early.text)
	default:
	}
	if got := h.Inside("seen", "touch", "go"); got.Code != 0 { // lets the command end
		t.Fatalf("%+v", got)
	}
	until("the last line", printed("over"))
	until("the result", func(a activity) bool { return a.Kind == "result" && a.Action == "sandbox-exec" && a.Outcome == "ok" })
	if answer := <-done; !strings.Contains(answer.text, "over") {
		t.Errorf("%s", answer.text)
	}

	// Interrupted, it ends in an orderly way.
	if err := watch.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for range seen {
	}
	if err := watch.Wait(); err != nil {
		t.Error(err)
	}
}
