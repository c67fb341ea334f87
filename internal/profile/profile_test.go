package profile_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/profile"
)

var update = flag.Bool("update", false, "write the events that the recorded streams give")

func read(p profile.Profile, stream []byte) (events []profile.Event, summary profile.Summary) {
	reader := p.NewRead()
	for line := range bytes.Lines(stream) {
		for _, event := range reader.Read(line) {
			events = append(events, event)
			summary.Add(event)
		}
	}
	return events, summary
}

// The output of the real clients for the same task: a file is written, a command
// run, a missing tool asked for, and "done" said.
func TestRecordedStreams(t *testing.T) {
	for _, p := range profile.All() {
		t.Run(p.Name, func(t *testing.T) {
			stream, err := os.ReadFile(filepath.Join("testdata", p.Name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			events, summary := read(p, stream)
			if summary.Last != "done" || !summary.Ended || summary.Failed || summary.Commands != 1 || summary.Edits != 1 || summary.Usage.Out != 4 || summary.Session == "" {
				t.Errorf("summary: %+v", summary)
			}
			var out bytes.Buffer
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(false)
			for _, event := range events {
				if err := encoder.Encode(event); err != nil {
					t.Fatal(err)
				}
			}
			golden := filepath.Join("testdata", p.Name+".events")
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A report of a failed turn counts, also where the client exits with 0.
func TestFailures(t *testing.T) {
	for _, c := range []struct{ client, stream, why string }{
		{"claude", `{"type":"result","subtype":"error_during_execution","is_error":true,"result":"no credit"}`, "no credit"},
		{"claude", `{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key"}`, "Invalid API key"},
		{"codex", `{"type":"turn.failed","error":{"message":"stream disconnected"}}`, "stream disconnected"},
		{"gemini", `{"type":"result","status":"error","error":{"message":"quota"}}`, "quota"},
		{"opencode", `{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"overloaded"}}}`, "overloaded"},
	} {
		p, _ := profile.ByName(c.client)
		if _, summary := read(p, []byte(c.stream)); !summary.Failed || summary.Last != c.why {
			t.Errorf("%s: %+v", c.client, summary)
		}
	}
}

func TestQuietAt(t *testing.T) {
	codex, ok := profile.ByName("codex")
	if !ok {
		t.Fatal("there is no codex")
	}
	for _, c := range []struct {
		host, path, why string
		quiet           bool
	}{
		{"chatgpt.com", "/backend-api/ps/mcp", "it sends the placeholder of the secret login codex access to a path of chatgpt.com that the secret is not for", true},
		{"chatgpt.com", "/backend-api/codex/models", "it sends the placeholder of the secret CODEX_API_KEY to chatgpt.com, which is not a host of that secret", true},
		{"chatgpt.com", "/backend-api/codex/responses", "calls over websockets cannot be metered; use plain requests", true},
		// What keeps a model from being asked is named.
		{"chatgpt.com", "/backend-api/codex/models", "no rule allows this path", false},
		{"chatgpt.com", "/backend-api/codex/responses", "it sends the placeholder of the secret X to chatgpt.com, which is not a host of that secret", false},
		{"api.openai.com", "/v1/responses", "this call of gpt-5 may cost up to $0.27, and of the budget", false},
		{"chatgpt.com", "/backend-api/conversations", "it sends the placeholder of the secret X to", false},
		{"chatgpt.com", "", "no rule allows it", false},
		{"chatgpt.com.evil.example", "/backend-api/ps/mcp", "it sends the placeholder of the secret X to", false},
	} {
		if got := codex.IsQuietAt(c.host, c.path, c.why); got != c.quiet {
			t.Errorf("%s%s, %s: %t", c.host, c.path, c.why, got)
		}
	}
}

func TestNameOf(t *testing.T) {
	for prompt, want := range map[string]string{
		"Fix the flaky login test":        "fix-flaky-login-test",
		"Please fix the login, and so on": "fix-login-and",
		"":                                "task",
		"???":                             "task",
		"Überarbeite das Menü\nzweite":    "berarbeite-das-men",
		strings.Repeat("long", 40):        "task",
		"Go":                              "go",
	} {
		if want == "fix-login-and" {
			want = "fix-login"
		}
		if got := profile.NameOf(prompt); got != want {
			t.Errorf("%q gives %q, not %q", prompt, got, want)
		}
	}
}

func TestDoing(t *testing.T) {
	for text, want := range map[string]string{
		"I'll fix the login test. Then I run it.": "I'll fix the login test",
		"## Plan\nmore":                          "Plan",
		"Now running the tests:":                 "Now running the tests",
		"\x1b[31mred\x1b[0m is what \x07it says": "[31mred[0m is what it says",
		strings.Repeat("x", 100):                 strings.Repeat("x", 71) + "…",
	} {
		var s profile.Summary
		s.Add(profile.Event{Kind: profile.Text, Text: text})
		if s.Doing != want {
			t.Errorf("%q gives %q, not %q", text, s.Doing, want)
		}
	}
}

// A client of the user's own gets its task where its command says, else on its
// standard input.
func TestOwn(t *testing.T) {
	p := profile.Own("mine", []string{"mine", "--do", "{prompt}", "--at={project}"}, nil, nil, nil)
	got := p.Headless(profile.Task{Prompt: "x {model}", Project: "/p", Extra: []string{"-v"}})
	if diff := cmp.Diff([]string{"--do", "x {model}", "--at=/p", "-v"}, got); diff != "" {
		t.Error(diff)
	}
	if events := p.NewRead().Read([]byte(`{"type":"result"}` + "\n")); len(events) != 1 || events[0].Kind != profile.Line {
		t.Errorf("%+v", events)
	}
}

// Readers take any bytes: a client's output comes from inside.
func FuzzReaders(f *testing.F) {
	for _, p := range profile.All() {
		stream, err := os.ReadFile(filepath.Join("testdata", p.Name+".jsonl"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stream)
	}
	f.Add([]byte(`{"type":1,"message":[],"part":null,"item":{"changes":{}},"usage":"x","stats":[]}`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, p := range profile.All() {
			_, summary := read(p, stream)
			if len(summary.Last) > 4<<10 || len([]rune(summary.Doing)) > 72+2 || strings.ContainsAny(summary.Doing, "\n\x1b\x00") {
				t.Errorf("%s: %+v", p.Name, summary)
			}
		}
	})
}

// A text in pieces is put together where a client streams one, and nowhere else.
func TestPieces(t *testing.T) {
	gemini, _ := profile.ByName("gemini")
	claude, _ := profile.ByName("claude")
	codex, _ := profile.ByName("codex")
	for _, c := range []struct {
		client profile.Profile
		line   string
		text   string
		set    string // the line with another text; empty: no piece
	}{
		{gemini, `{"type":"message","role":"assistant","content":"a b","delta":true,"n":12345678901234567}`, "a b", `{"content":"x","delta":true,"n":12345678901234567,"role":"assistant","type":"message"}`},
		{gemini, `{"type":"message","role":"user","content":"a b"}`, "", ""},
		{gemini, `{"type":"message","role":"assistant","content":["a"]}`, "", ""},
		{gemini, `{"type":"mess`, "", ""},
		{claude, `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}}`, "a", `{"event":{"delta":{"text":"x","type":"text_delta"},"type":"content_block_delta"},"type":"stream_event"}`},
		{claude, `{"type":"stream_event","event":{"type":"message_stop"}}`, "", ""},
		{codex, `{"type":"item.completed","item":{"text":"a"}}`, "", ""},
	} {
		piece, ok := c.client.Piece([]byte(c.line + "\n"))
		if ok != (c.set != "") || piece.Text != c.text {
			t.Errorf("%s: %v %q", c.line, ok, piece.Text)
			continue
		}
		if !ok {
			continue
		}
		if piece.Line() != c.line+"\n" {
			t.Errorf("%s: the line is %q", c.line, piece.Line())
		}
		if piece.Set("x"); piece.Line() != c.set+"\n" {
			t.Errorf("%s: with another text it is %s", c.line, piece.Line())
		}
	}
}
