package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/mcp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fake is an engine that keeps no audit log; a use case that a test does not
// expect panics on the embedded nil interface.
type fake struct {
	mcp.UseCases
	mu       sync.Mutex
	released []string
}

func (f *fake) Begin(ctx context.Context, _ engine.Actor, _ engine.Action) (context.Context, *engine.Call, error) {
	return ctx, nil, nil
}

func (f *fake) List(context.Context, string, bool) ([]engine.Info, error) {
	return nil, nil
}

func (f *fake) Ports(context.Context, string, string) ([]engine.Port, error) { return nil, nil }

func (f *fake) Create(_ context.Context, r engine.CreateRequest) (engine.Creation, error) {
	switch r.Name {
	case "breaks":
		panic("a defect")
	case "fails":
		return engine.Creation{}, fault.New(fault.Unavailable, "cannot create it")
	}
	return engine.Creation{Info: engine.Info{Name: r.Name}}, nil
}

func (f *fake) Hold(_ context.Context, _, name string, who engine.Actor) (engine.Hold, []string, error) {
	return engine.Hold{ID: name, Name: name, Session: who.Session}, nil, nil
}

func (f *fake) Renew(context.Context, engine.Hold) error { return nil }

func (f *fake) Release(_ context.Context, hold engine.Hold) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released = append(f.released, hold.Name)
	return nil
}

// connect gives a client of a server over a fake engine.
func connect(t *testing.T, e mcp.UseCases, handles bool) *sdk.ClientSession {
	t.Helper()
	made, end := mcp.Server(e, handles)
	t.Cleanup(end)
	ours, theirs := sdk.NewInMemoryTransports()
	served, err := made.Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		_ = served.Wait() // the client has ended it
	})
	return client
}

// toolsMost bounds the list of tools on the wire, and the part of it that a model
// reads, in bytes: names, descriptions and arguments, without the annotations that
// clients keep for themselves. A model reads it in every conversation. Where each
// call names its session, every tool has one argument more. The line that a server
// sends is bounded in test/mcp; here the newest revision of the protocol adds a few
// bytes.
var toolsMost = map[string]struct{ wire, read int }{"tools": {9_050, 8_000}, "tools-stateless": {10_500, 9_400}}

// Clients' and models' view of the tools is pinned, and bounded: all of it is in
// the context of every conversation.
func TestToolSchemas(t *testing.T) {
	for name, handles := range map[string]bool{"tools": false, "tools-stateless": true} {
		list, err := connect(t, &fake{}, handles).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		wire, err := json.Marshal(mcp.Listing(list))
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for _, tool := range list.Tools {
			seen, err := json.Marshal(map[string]any{"name": tool.Name, "description": tool.Description, "inputSchema": tool.InputSchema})
			if err != nil {
				t.Fatal(err)
			}
			read += len(seen) + 1
		}
		if most := toolsMost[name]; len(wire) > most.wire || read > most.read {
			t.Errorf("%s: the list has %d bytes on the wire, of which a model reads %d; %d and %d are allowed", name, len(wire), read, most.wire, most.read)
		}
		for _, tool := range list.Tools {
			if len(tool.Description) > 320 || !strings.HasPrefix(tool.Name, "sandbox-") || tool.Annotations == nil || tool.OutputSchema != nil {
				t.Errorf("%s: %d characters of description, annotations %v, output schema %v", tool.Name, len(tool.Description), tool.Annotations, tool.OutputSchema)
			}
		}
		text, err := json.MarshalIndent(list.Tools, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".json", string(text)+"\n")
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; rewrite it with -update):\n%s", file, diff)
	}
}

// Annotations say truly what a tool may do: clients decide by them when to ask.
func TestAnnotations(t *testing.T) {
	list, err := connect(t, &fake{}, false).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, tool := range list.Tools {
		a := tool.Annotations
		// An omitted hint means the protocol's default, which for both is true.
		destructive := !a.ReadOnlyHint && (a.DestructiveHint == nil || *a.DestructiveHint)
		open := a.OpenWorldHint == nil || *a.OpenWorldHint
		for word, is := range map[string]bool{"reads": a.ReadOnlyHint, "idempotent": a.IdempotentHint, "destructive": destructive, "open": open} {
			if is {
				got[word] += strings.TrimPrefix(tool.Name, "sandbox-") + " "
			}
		}
	}
	want := map[string]string{
		"reads":       "diff files list log read search ",
		"idempotent":  "diff files list log open read search service write ",
		"destructive": "edit exec rewind service update wait write ",
		"open":        "exec wait ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every kind of error says what to do next, in every tool.
func TestEveryKindHasANextStep(t *testing.T) {
	steps := mcp.NextSteps()
	for _, kind := range fault.Kinds() {
		if steps[kind] == "" {
			t.Errorf("%s has no next step", kind)
		}
		answer := mcp.Failure("sandbox-read", fault.New(kind, "cannot do it"))
		text, ok := answer.Content[0].(*sdk.TextContent)
		if !ok || !answer.IsError || !strings.HasPrefix(text.Text, "error: cannot do it\nkind: "+string(kind)+"\nnext: ") {
			t.Errorf("%s: %+v", kind, answer)
		}
	}
	if len(steps) != len(fault.Kinds()) {
		t.Errorf("%d next steps for %d kinds", len(steps), len(fault.Kinds()))
	}
	for hint, want := range map[string]string{
		"litterbox list": "ask the human to run: litterbox list",
		"try tea":        "try tea",
	} {
		answer := mcp.Failure("sandbox-log", fault.New(fault.Conflict, "no\x1b[31m").WithHint("%s", hint))
		if text, ok := answer.Content[0].(*sdk.TextContent); !ok || !strings.HasSuffix(text.Text, "next: "+want) || strings.Contains(text.Text, "\x1b") {
			t.Errorf("%q: %+v", hint, answer.Content[0])
		}
	}
	if got := mcp.Failure("sandbox-log", errors.Join(context.Canceled)); !strings.Contains(got.Content[0].(*sdk.TextContent).Text, "kind: canceled") {
		t.Errorf("%+v", got.Content[0])
	}
}

func call(t *testing.T, c *sdk.ClientSession, name string, arguments map[string]any) (text string, failed bool) {
	t.Helper()
	result, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return result.Content[0].(*sdk.TextContent).Text, result.IsError
}

// A defect in one tool is an error of that call; nothing else ends.
func TestADefectEndsOneCall(t *testing.T) {
	c := connect(t, &fake{}, false)
	if text, failed := call(t, c, "sandbox-create", map[string]any{"name": "breaks"}); !failed || !strings.Contains(text, "kind: internal") {
		t.Errorf("%q", text)
	}
	if text, failed := call(t, c, "sandbox-list", nil); failed {
		t.Errorf("%q", text)
	}
}

// Sessions that calls name are bounded, and one without a sandbox is forgotten
// at once.
func TestNamedSessionsAreBounded(t *testing.T) {
	e := &fake{}
	c := connect(t, e, true)
	for range 300 {
		if text, failed := call(t, c, "sandbox-list", nil); failed {
			t.Fatalf("%q", text)
		}
		if text, failed := call(t, c, "sandbox-create", map[string]any{"name": "fails"}); !failed || !strings.Contains(text, "cannot create it") {
			t.Fatalf("%q", text)
		}
	}
	opened := 0
	for range 300 {
		text, failed := call(t, c, "sandbox-create", map[string]any{"name": "works"})
		if failed {
			if !strings.Contains(text, "256 are open") {
				t.Fatalf("%q", text)
			}
			break
		}
		opened++
	}
	if opened != 256 {
		t.Errorf("%d sessions were opened", opened)
	}
}

func TestVisible(t *testing.T) {
	for output, want := range map[string]string{
		"plain\n\ttext":                "plain\n\ttext",
		"\x1b[1;31mred\x1b[0m":         "red",
		"\x1b]0;title\x07after":        "after",
		"\x1b]8;;http://x\x1b\\link":   "link",
		"\x1bPdcs\x1b\\after":          "after",
		"10%\r50%\r100%\ndone\r\n":     "100%\ndone\n",
		"bell\x07 nul\x00 del\x7f":     "bell\ufffd nul\ufffd del\ufffd",
		"c1 \u009b31m and \xff":        "c1 \ufffd31m and \ufffd",
		"\u202eesrever\u2066":          "\ufffdesrever\ufffd",
		"family \u200d joined":         "family \u200d joined",
		"an end that is cut \x1b[":     "an end that is cut ",
		"an end that is cut \x1b":      "an end that is cut \ufffd",
		"héllo wörld 日本":               "héllo wörld 日本",
		"\x1b[2J\x1b[H\x1b[?25lhidden": "hidden",
	} {
		if got := mcp.Visible([]byte(output)); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add([]byte("\x1b[31m\r\n\xff"))
	f.Fuzz(func(t *testing.T, output []byte) {
		got := mcp.Visible(output)
		if i := strings.IndexFunc(got, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }); i >= 0 {
			t.Errorf("%q: a control character at %d of %q", output, i, got)
		}
		if strings.ToValidUTF8(got, "") != got {
			t.Errorf("%q: %q is not UTF-8", output, got)
		}
	})
}

func TestCut(t *testing.T) {
	if text, whole := mcp.Cut(100, "one\n", "two\n"); text != "one\ntwo\n" || !whole {
		t.Errorf("%q", text)
	}
	var lines []string
	for i := range 100_000 {
		lines = append(lines, strings.Repeat("x", i%50)+"\n")
	}
	all := strings.Join(lines, "")
	text, whole := mcp.Cut(1000, lines...)
	head, tail, ok := strings.Cut(text, " bytes left out …]\n")
	if whole || !ok || len(text) > 1100 || !strings.HasPrefix(all, strings.Split(head, "\n[… ")[0]) || !strings.HasSuffix(all, tail) {
		t.Errorf("%q", text)
	}
	// Non-text output is counted; text with colours or in an older encoding is
	// text.
	for output, want := range map[string]string{
		"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00":     "binary, 12 bytes\n",
		"\xff\xd8\xff\xe0\x10JFIF\x81\x92\xa3":        "binary, 12 bytes\n",
		"\x1b[31mred\x1b[0m\tcaf\xe9 et un autre mot": "red\tcaf\ufffd et un autre mot",
	} {
		if text, _ := mcp.Cut(100, output); text != want {
			t.Errorf("%q: %q, want %q", output, text, want)
		}
	}
	// Exactly at the limit, one more, and larger than what is kept in memory.
	if text, whole := mcp.Cut(10, "0123456789"); text != "0123456789" || !whole {
		t.Errorf("%q", text)
	}
	if text, whole := mcp.Cut(10, "01234567890"); whole || !strings.Contains(text, "[… 1 of 11 bytes left out …]") {
		t.Errorf("%q", text)
	}
	if text, whole := mcp.Cut(300_000, strings.Repeat("y", 1<<20)); whole || len(text) > 201_000 || !strings.Contains(text, "of 1048576 bytes") {
		t.Errorf("%d bytes", len(text))
	}
	for _, c := range [][5]int64{{100, 10, 10, 50, 90}, {100, 500, 10, 90, 50}, {100, 500, 500, 50, 50}, {100, 10, 500, 50, 90}} {
		forOut, forErr := mcp.Share(int(c[0]), c[1], c[2])
		if int64(forOut) != c[3] || int64(forErr) != c[4] {
			t.Errorf("%v: %d and %d", c, forOut, forErr)
		}
	}
}
