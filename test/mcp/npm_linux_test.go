package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// tools are the clients of others, from npm, pinned by testdata/npm.
type tools struct {
	t    *testing.T
	node string
	bin  string
}

// npm installs them into a directory of the test. If npm or the registry is
// missing, the test is skipped, unless LITTERBOX_TEST_REQUIRE names npm.
func npm(t *testing.T) *tools {
	t.Helper()
	missing := func(why string) {
		if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), "npm") {
			t.Fatal("LITTERBOX_TEST_REQUIRE demands npm: " + why)
		}
		t.Skip(why)
	}
	if os.Getenv("LITTERBOX_TEST_AGAIN") != "" {
		t.Skip("other people's clients do not depend on who runs the tests, and were here as another user a moment ago")
	}
	if runtime.GOARCH != "amd64" {
		missing("the pinned node is for amd64")
	}
	program, err := exec.LookPath("npm")
	if err != nil {
		missing("no npm")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(filepath.Join("testdata", "npm", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// No scripts: of everything fetched only what is called below runs.
	install := exec.CommandContext(ctx, program, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=5")
	install.Dir = dir
	if output, err := install.CombinedOutput(); err != nil {
		missing("npm ci: " + err.Error() + "\n" + string(output))
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	return &tools{t: t, node: filepath.Join(bin, "node"), bin: bin}
}

// run runs one of them and returns its output.
func (n *tools) run(h *program.Host, name string, args ...string) (stdout, stderr string, err error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.node, append([]string{filepath.Join(n.bin, name)}, args...)...)
	var out, complaints bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.Repo, h.Env, &out, &complaints
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	return out.String(), complaints.String(), err
}

func TestForeignClients(t *testing.T) {
	t.Parallel()
	built.Require(t)
	n := npm(t)
	t.Run("inspector", func(t *testing.T) { inspector(t, n) })
	t.Run("conformance", func(t *testing.T) { conformance(t, n) })
}

// inspector lets the official inspector list and call tools, over both
// transports.
func inspector(t *testing.T, n *tools) {
	h := built.New(t)
	_, address, token := web(t, h)
	// The inspector hands on little of its environment (HOME and PATH, not where
	// the state is), and the end of the test has to find the sandboxes.
	server := append(append([]string{"env"}, h.Env...), h.Program("litterbox"), "mcp", "--structured")
	for name, target := range map[string][]string{
		"stdio": server,
		"http":  {address, "--transport", "http", "--header", "Authorization: Bearer " + token},
	} {
		inspect := func(into any, args ...string) {
			t.Helper()
			// Its exit code is 5 for a result that is an error.
			out, complaints, runErr := n.run(h, "mcp-inspector", append(append([]string{"--cli"}, target...), args...)...)
			if err := json.Unmarshal([]byte(out), into); err != nil {
				err = errors.Join(runErr, err)
				t.Errorf("%s %q: %v\n%s%s", name, args, err, out, complaints)
			}
		}
		var list struct{ Tools []struct{ Name string } }
		inspect(&list, "--method", "tools/list")
		if len(list.Tools) != 18 {
			t.Errorf("%s: %d tools: %v", name, len(list.Tools), list.Tools)
		}
		var called struct {
			IsError           bool
			StructuredContent struct{ Name, Branch string }
			Content           []struct{ Text string }
		}
		inspect(&called, "--method", "tools/call", "--tool-name", "sandbox-create", "--tool-arg", "name=by "+name)
		if called.IsError || called.StructuredContent.Branch != "by-"+name || !strings.Contains(called.Content[0].Text, "created sandbox by-"+name) {
			t.Errorf("%s: %+v", name, called)
		}
		var failed struct {
			IsError bool
			Content []struct{ Text string }
		}
		inspect(&failed, "--method", "tools/call", "--tool-name", "sandbox-open", "--tool-arg", "name=nobody")
		if !failed.IsError || !strings.Contains(failed.Content[0].Text, "kind: not_found") {
			t.Errorf("%s: %+v", name, failed)
		}
	}
}

// exception is a line of testdata/conformance.txt.
type exception struct {
	check, says *regexp.Regexp
	line        string
	used        bool
}

func exceptions(t *testing.T) []*exception {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "conformance.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*exception
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		fields := strings.Split(line, " | ")
		if line == "" || line[0] == '#' {
			continue
		}
		if len(fields) != 3 {
			t.Fatalf("a line without a reason: %q", line)
		}
		all = append(all, &exception{
			check: regexp.MustCompile("^(?:" + fields[0] + ")$"), says: regexp.MustCompile(fields[1]), line: line,
		})
	}
	return all
}

// conformance runs the protocol's own test suite for servers, for the newest
// revision and for the last one with sessions. What does not apply to this
// server is listed, with the reasons, in testdata/conformance.txt.
func conformance(t *testing.T, n *tools) {
	h := built.New(t)
	_, address, token := web(t, h)
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	// The suite knows no tokens; Host and Origin pass as they are.
	forward := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An answer that comes before the end of the request's body was passed on
		// would be cut off: this HTTP server closes the body with the first byte
		// of the answer.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	known := exceptions(t)
	for _, revision := range []string{newest, sessions} {
		results := filepath.Join(h.Dir, revision)
		// Its exit code counts what does not apply, too.
		out, complaints, _ := n.run(h, "conformance", "server", "--url", proxy.URL+"/mcp", "--requirements", revision, "-o", results)
		files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
		if err != nil || len(files) < 25 {
			t.Fatalf("revision %s: %d scenarios, %v\n%s%s", revision, len(files), err, out, complaints)
		}
		passed := 0
		for _, file := range files {
			passed += judge(t, file, known)
		}
		if passed < 25 {
			t.Errorf("revision %s: only %d checks passed", revision, passed)
		}
		t.Logf("revision %s: %d scenarios, %d checks passed", revision, len(files), passed)
	}
	for _, e := range known {
		if !e.used {
			t.Errorf("an exception that explains nothing: %s", e.line)
		}
	}
}

// judge looks at the checks of one scenario and counts those that passed.
func judge(t *testing.T, file string, known []*exception) (passed int) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var checks []struct{ ID, Status, Description, ErrorMessage string }
	if err := json.Unmarshal(content, &checks); err != nil {
		t.Fatal(err)
	}
	for _, check := range checks {
		switch check.Status {
		case "SUCCESS":
			passed++
		case "FAILURE":
			explained := false
			for _, e := range known {
				if e.check.MatchString(check.ID) && e.says.MatchString(check.ErrorMessage) {
					e.used, explained = true, true
				}
			}
			if !explained {
				t.Errorf("%s: %s (%s): %s", filepath.Base(filepath.Dir(file)), check.ID, check.Description, check.ErrorMessage)
			}
		}
	}
	return passed
}
