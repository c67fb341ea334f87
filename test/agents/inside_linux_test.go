package agents_test

import (
	"encoding/json"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// insideClient is a real client that works inside.
type insideClient struct {
	client
	path  string                        // of its program, below the installation
	point func(address string) []string // what points it at the model, as on the host
	flags []string
}

func insideClients() []insideClient {
	find := func(name string) client {
		for _, c := range clients {
			if c.name == name {
				return c
			}
		}
		panic(name)
	}
	return []insideClient{
		{client: find("claude"), path: "node_modules/@anthropic-ai/claude-code-linux-x64",
			point: func(address string) []string { return []string{"ANTHROPIC_BASE_URL=http://" + address} },
			flags: []string{"-e", "ANTHROPIC_API_KEY=stand-in-key", "--model", "claude-sonnet-4-5"}},
		{client: find("codex"), path: "node_modules/.bin",
			flags: []string{"-e", "STUB_KEY=stand-in-key", "--", "-c", "model=stub", "-c", "model_provider=stub", "-c", "model_providers.stub.name=stub", "-c", "model_providers.stub.wire_api=responses",
				"-c", "model_providers.stub.env_key=STUB_KEY"}},
		{client: find("gemini"), path: "node_modules/.bin",
			point: func(address string) []string { return []string{"GOOGLE_GEMINI_BASE_URL=http://" + address} },
			flags: []string{"-e", "GEMINI_API_KEY=stand-in-key", "--model", "gemini-2.5-flash"}},
		{client: find("opencode"), path: "node_modules/opencode-linux-x64-baseline/bin"},
	}
}

// The address of the model: reserved, in a network of the test's own.
const modelAddress = "203.0.113.7"

// ownNetwork puts this test, and what it starts, into a network of its own, in
// which the address is this machine.
func ownNetwork(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root makes a network of its own here")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("no network of its own can be made: ", err)
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"addr", "add", modelAddress + "/32", "dev", "lo"}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Skipf("ip %v: %v: %s", args, err, out)
		}
	}
}

// Each client works inside by litterbox agent run: with its own tools, without a
// question, and although the checkout has settings that deny it those outside.
func TestRealClientsInside(t *testing.T) {
	dir := installed(t)
	for _, c := range insideClients() {
		for _, exclusive := range []bool{false, true} {
			name := c.name
			if exclusive {
				name += "/exclusive"
			}
			t.Run(name, func(t *testing.T) { c.works(t, dir, exclusive) })
		}
	}
}

// workplace is a host on which a client can work inside.
type workplace struct {
	h     *program.Host
	m     *model
	asked *heard   // what m was asked
	flags []string // of agent run, that lead the client to m
}

// begin makes a host with the client's program, a repository that may deny the
// client its own tools outside, and a model that makes it write two files.
func (c insideClient) begin(t *testing.T, dir string, exclusive bool) workplace {
	ownNetwork(t)
	h := built.New(t)
	m := newModel(t, c.write(h), c.shell(h))
	listener, err := net.Listen("tcp", modelAddress+":0")
	if err != nil {
		t.Fatal(err)
	}
	asked := &heard{of: m.Config.Handler}
	at := httptest.NewUnstartedServer(asked)
	at.Listener = listener
	at.Start()
	t.Cleanup(at.Close)
	address := listener.Addr().String()
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "[mounts]\nread-only = ["+text(dir)+"]\n[network]\nallow = ["+text(address)+"]\n")
	for i, v := range h.Env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			h.Env[i] = "PATH=" + filepath.Join(dir, c.path) + ":" + path
		}
	}
	if exclusive {
		h.Must("agent", "install", c.name, "--exclusive")
		h.Git("add", "-A", "-f")
		h.Git("commit", "--quiet", "-m", "Deny it its own tools")
	}
	if c.point != nil {
		h.Env = append(h.Env, c.point(address)...)
	}
	flags := slices.Clone(c.flags)
	if c.name == "codex" {
		flags = append(flags, "-c", "model_providers.stub.base_url=http://"+address+"/v1")
	}
	if c.name == "opencode" {
		h.Must("create", "box")
		h.Litterbox("exec", "box", "--no-commit", "--", "mkdir", "-p", h.Home+"/.config/opencode")
		put(h, "box", h.Home+"/.config/opencode/opencode.json", text(object{
			"provider": object{"stub": object{
				"npm": "@ai-sdk/openai-compatible", "name": "stub", "options": object{"baseURL": "http://" + address + "/v1", "apiKey": "stub"},
				"models": object{"stub": object{"name": "stub", "tool_call": true}},
			}}, "model": "stub/stub", "small_model": "stub/stub",
		}))
		flags = append(flags, "-e", "OPENCODE_DISABLE_MODELS_FETCH=1")
	}
	return workplace{h, m, asked, flags}
}

func (c insideClient) works(t *testing.T, dir string, exclusive bool) {
	b := c.begin(t, dir, exclusive)
	h, m, flags := b.h, b.m, b.flags
	args := []string{"agent", "run", c.name, "Do it", "--name", "box"}
	got := h.Litterbox(append(args, flags...)...)
	if exclusive && c.name == "gemini" {
		// It cannot be told to leave these settings out: that is reported at once.
		if got.Code != 125 || !strings.Contains(got.Stderr, "litterbox agent uninstall gemini") {
			t.Errorf("%+v", got)
		}
		return
	}
	if got.Code != 0 || !strings.Contains(got.Stdout, "completed") {
		t.Fatalf("exit code %d\n%s\n%s\noffered: %q\nresults: %q\nstrange: %q", got.Code, got.Stdout, got.Stderr, m.offered, m.results, m.strange)
	}
	t.Logf("%s\n%s", got.Stdout, got.Stderr)
	for _, name := range []string{"own-write.txt", "own-shell.txt"} {
		if shown := h.Command(h.Repo, "git", "show", "box:"+name); shown.Stdout != "x\n" {
			t.Errorf("%s: %+v\noffered: %q\nresults: %q", name, shown, m.offered, m.results)
		}
	}
	for _, name := range m.offered {
		if strings.Contains(name, "litterbox") {
			t.Errorf("a server of litterbox runs inside: %q", name)
		}
	}
	var status struct {
		Agent any
	}
	if err := json.Unmarshal([]byte(h.Must("status", "box", "--json")), &status); err != nil {
		t.Error(err)
	}
	// The conversation goes on: it contains what was said.
	m.mu.Lock()
	before := len(m.results)
	m.results = nil
	m.mu.Unlock()
	again := h.Litterbox(slices.Concat([]string{"agent", "resume", "box", "Once more"}, flags)...)
	if again.Code != 0 || len(m.results) < before {
		t.Errorf("resume, with %d of %d results: %+v", len(m.results), before, again)
	}
}

func put(h *program.Host, box, path, content string) {
	h.Helper()
	source := filepath.Join(h.Dir, "put")
	h.Put(source, content)
	h.Must("cp", source, box+":"+path)
}
