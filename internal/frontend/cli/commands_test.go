package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func TestCreate(t *testing.T) {
	var got engine.CreateRequest
	e := &fake{create: func(_ context.Context, r engine.CreateRequest) (engine.Creation, error) {
		if r.Review == nil || r.Output == nil {
			t.Error("nobody is asked about the configuration, or the set-up is not shown")
		}
		got, got.Review, got.Output = r, nil, nil
		made := info("fix-login")
		made.Branch = "agent/fix-login"
		return engine.Creation{Info: made, Notes: []string{"uncommitted changes stay out"}}, nil
	}}
	wantOutcome(t, lb(t, e, "", "create", "Fix login", "--base", "v1", "--allow-degraded"), outcome{
		0, "created fix-login on branch agent/fix-login at 2222222\n", "note: uncommitted changes stay out\n",
	})
	want := engine.CreateRequest{Dir: here(t), Name: "Fix login", Base: "v1", AllowDegraded: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	asJSON := lb(t, e, "", "create", "Fix login", "--json")
	golden(t, "json/create.json", asJSON.Stdout)
}

func TestDirectoryFlag(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-C", "/tmp", "list"}, "/tmp"},
		{[]string{"list", "-C", "/tmp"}, "/tmp"},
		{[]string{"--directory=/tmp", "ls"}, "/tmp"},
		{[]string{"-C", "/a", "-C", "b", "-C", "../c", "list"}, "/a/c"},
		{[]string{"-C", "b", "-C", "/a", "list"}, "/a"},
		{[]string{"-C", "sub", "list"}, here(t) + "/sub"},
		{[]string{"list"}, here(t)},
	} {
		got := ""
		e := &fake{list: func(dir string, _ bool) ([]engine.Info, error) { got = dir; return nil, nil }}
		if out := lb(t, e, "", c.args...); out.Code != 0 || got != c.want {
			t.Errorf("%q works in %q, want %q (%+v)", c.args, got, c.want, out)
		}
	}
}

func TestReadAndWrite(t *testing.T) {
	e := &fake{
		read: func(dir, name, path string, w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s %s\x00\xff", name, path)
			return err
		},
		write: func(r engine.WriteRequest) (*sandbox.Iteration, []string, error) {
			content, err := io.ReadAll(r.Content)
			r.Content = nil
			if diff := cmp.Diff(engine.WriteRequest{Dir: here(t), Name: "fix", Path: "-a b", Message: "why"}, r); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			return &sandbox.Iteration{Commit: "4444444dddd", Message: "why \x1b[31m" + string(content)}, []string{"one"}, err
		},
	}
	wantOutcome(t, lb(t, e, "", "read", "fix", "src/a"), outcome{0, "fix src/a\x00\xff", ""})
	wantOutcome(t, lb(t, e, "content", "write", "-m", "why", "fix", "--", "-a b"), outcome{0, "[fix 4444444] why content\n", "note: one\n"})
}

func TestCp(t *testing.T) {
	dir := here(t)
	for _, c := range []struct {
		args []string
		want engine.CopyRequest
		ok   bool
	}{
		{[]string{"fix:src/a", "b"}, engine.CopyRequest{Name: "fix", Inside: "src/a", Outside: dir + "/b", ToHost: true}, true},
		{[]string{"b", "fix:src/", "-m", "why"}, engine.CopyRequest{Name: "fix", Inside: "src/", Outside: dir + "/b", Message: "why"}, true},
		{[]string{"fix:a", "out/"}, engine.CopyRequest{Name: "fix", Inside: "a", Outside: dir + "/out/", ToHost: true}, true},
		{[]string{"fix:a:b", "/x"}, engine.CopyRequest{Name: "fix", Inside: "a:b", Outside: "/x", ToHost: true}, true},
		{[]string{"./a:b", "fix:"}, engine.CopyRequest{Name: "fix", Inside: ".", Outside: dir + "/a:b"}, true},
		{[]string{"a", "b"}, engine.CopyRequest{}, false},
		{[]string{"fix:a", "fox:b"}, engine.CopyRequest{Name: "fox", Inside: "b", From: "fix", Outside: "a"}, true},
		{[]string{"a", "b", "fix:c"}, engine.CopyRequest{Name: "fix", Inside: "c/", Outside: dir + "/b"}, true},
		{[]string{"-", "b", "fix:c"}, engine.CopyRequest{}, false},
		{[]string{":a", "b"}, engine.CopyRequest{}, false},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var got engine.CopyRequest
			e := &fake{copy: func(r engine.CopyRequest) (*sandbox.Iteration, []string, error) { got = r; return nil, nil, nil }}
			out := lb(t, e, "", append([]string{"cp"}, c.args...)...)
			if !c.ok {
				if out.Code != 2 || !strings.Contains(out.Stderr, "must be NAME:PATH") && !strings.Contains(out.Stderr, "- is for one SRC") {
					t.Errorf("%+v", out)
				}
				return
			}
			c.want.Dir = dir
			if diff := cmp.Diff(c.want, got); diff != "" || out.Code != 0 {
				t.Errorf("%+v\nrequest (-want +got):\n%s", out, diff)
			}
		})
	}
}

func TestMilestone(t *testing.T) {
	e := &fake{milestone: func(_, name, message string) (*sandbox.Iteration, error) {
		return &sandbox.Iteration{Commit: "4444444dddd", Message: message}, nil
	}}
	wantOutcome(t, lb(t, e, "", "milestone", "fix", "-m", "Log in"), outcome{0, "[fix 4444444] Log in\n", ""})
	for _, args := range [][]string{{"milestone", "fix"}, {"milestone", "fix", "-m", " "}} {
		wantOutcome(t, lb(t, nil, "", args...), outcome{
			2, "", "litterbox: cannot run litterbox milestone: a milestone needs a message: -m MESSAGE\n  try: litterbox milestone --help\n",
		})
	}
}

func TestUpdate(t *testing.T) {
	var got engine.UpdateRequest
	e := &fake{update: func(r engine.UpdateRequest) (engine.Updated, error) {
		got = r
		return engine.Updated{Name: "fix", OntoRef: "main", Commit: "4444444dddd", Number: 3, Taken: 1, Changed: 2, Conflicts: []string{"a\u202eb"}}, nil
	}}
	wantOutcome(t, lb(t, e, "", "update", "fix", "--onto", "next", "--conflicts", "markers"), outcome{
		0, "[fix 4444444] 1 commit of main, 2 files inside changed\n", "note: conflict markers to resolve are in: ab\n",
	})
	if want := (engine.UpdateRequest{Dir: got.Dir, Name: "fix", Onto: "next", Markers: true}); got != want {
		t.Errorf("request %+v, want %+v", got, want)
	}
	if out := lb(t, nil, "", "update", "fix", "--conflicts", "no"); out.Code != 2 || !strings.Contains(out.Stderr, `--conflicts is refuse or markers, not "no"`) {
		t.Errorf("%+v", out)
	}
}

func TestList(t *testing.T) {
	degraded := info("b")
	degraded.Isolation, degraded.State, degraded.Problem = sandbox.IsolationDegraded, sandbox.Failed, "lost\x1b]0;x\x07 it"
	degraded.Branch = "b\u202etxt"
	var all []bool
	e := &fake{list: func(_ string, a bool) ([]engine.Info, error) {
		all = append(all, a)
		return []engine.Info{info("a"), degraded}, nil
	}}
	got := lb(t, e, "", "list")
	golden(t, "text/list.txt", got.Stdout)
	if want := "note: b: lost it\n"; got.Stderr != want {
		t.Errorf("stderr %q, want %q", got.Stderr, want)
	}
	golden(t, "text/list-all.txt", lb(t, e, "", "ls", "--all").Stdout)
	golden(t, "json/list.json", lb(t, e, "", "list", "--json").Stdout)
	if diff := cmp.Diff([]bool{false, true, false}, all); diff != "" {
		t.Errorf("asked for all (-want +got):\n%s", diff)
	}
}

func TestEmptyListings(t *testing.T) {
	e := &fake{
		list: func(string, bool) ([]engine.Info, error) { return nil, nil },
		log:  func(string, string) ([]sandbox.Iteration, error) { return nil, nil },
	}
	for _, args := range [][]string{{"list", "--json"}, {"status", "--json"}, {"log", "fix", "--json"}} {
		wantOutcome(t, lb(t, e, "", args...), outcome{0, "[]\n", ""})
	}
	const make = "note: no sandboxes yet; make one with: litterbox create NAME\n"
	wantOutcome(t, lb(t, e, "", "list"), outcome{0, "", make})
	wantOutcome(t, lb(t, e, "", "status"), outcome{0, "", make})
	wantOutcome(t, lb(t, e, "", "log", "fix"), outcome{0, "", "note: nothing was done in fix yet; try: litterbox exec fix -- CMD\n"})
}

func TestStatus(t *testing.T) {
	e := &fake{
		list: func(string, bool) ([]engine.Info, error) { return []engine.Info{info("a"), info("b")}, nil },
		status: func(_, name string) (engine.Status, error) {
			if name == "b" {
				return engine.Status{Info: info("b"), StateDir: "/state/b"}, nil
			}
			return engine.Status{
				Info: info(name), Trusted: true, StateDir: "/state/a",
				Lease:      &sandbox.Lease{Version: 1, ID: "l", SandboxID: "id-a", Driver: "namespace", Handle: []byte("{}"), State: sandbox.LeaseActive, AcquiredAt: now, ExpiresAt: now.Add(time.Minute), Heartbeat: now.Add(-12 * time.Second), Holder: `{"pid":42}`, Health: "ok"},
				Revision:   3,
				Cycles:     []sandbox.Cycle{{Version: 1, ID: 3, Kind: "exec", Command: "make \x1b[2J test", State: sandbox.Completed, ExitCode: 2, RequestedAt: now, StartedAt: now, CompletedAt: now}},
				Background: processes(),
				Mounts:     []engine.Mount{{Path: "/usr/lib/go", Why: "toolchain: go"}},
				BaseImage:  &sandbox.Image{Reference: "docker.io/library/debian:12", Digest: "sha256:0123", Layers: []string{"sha256:4567"}, Env: []string{"PATH=/bin"}},
			}, nil
		},
	}
	golden(t, "text/status.txt", lb(t, e, "", "status").Stdout)
	golden(t, "json/status.json", lb(t, e, "", "status", "a", "--json").Stdout)
	if all := lb(t, e, "", "status", "--json").Stdout; !strings.HasPrefix(all, "[\n") || strings.Count(all, `"state_dir"`) != 2 {
		t.Errorf("not an array of two:\n%s", all)
	}
	e.status = func(string, string) (engine.Status, error) { return engine.Status{}, errNotFound }
	wantOutcome(t, lb(t, e, "", "status", "fix"), outcome{3, "", "litterbox: cannot find a sandbox called \"fix\"\n  try: litterbox list\n"})
}

func TestLog(t *testing.T) {
	e := &fake{log: func(string, string) ([]sandbox.Iteration, error) {
		return []sandbox.Iteration{
			{Version: 1, Number: 1, Cycle: 1, Kind: "exec", Message: "First", Command: "make", Commit: "5555555eeee", StartedAt: now, Duration: 1234567, Changed: 2},
			{Version: 1, Number: 2, Cycle: 2, Kind: "exec", Message: "Evil\x1b]0;x\x07\ttab\nline", Commit: "6666666ffff", StartedAt: now, ExitCode: 130, Signal: "INT", Notes: []string{"n"}},
			{Version: 1, Number: 3, Cycle: 3, Kind: "exec", Message: "Slow", Commit: "7777777aaaa", StartedAt: now, Duration: 90e9, ExitCode: 143, TimedOut: true},
		}, nil
	}}
	golden(t, "text/log.txt", lb(t, e, "", "log", "fix").Stdout)
	golden(t, "json/log.json", lb(t, e, "", "log", "fix", "--json").Stdout)
}

func TestDelete(t *testing.T) {
	e := &fake{delete: func(r engine.DeleteRequest) (engine.DeleteResult, error) {
		switch {
		case r.Name == "gone":
			return engine.DeleteResult{}, fault.New(fault.NotFound, "cannot find %q", r.Name)
		case r.Name == "half":
			return engine.DeleteResult{Name: "half"}, nil
		case !r.Force:
			return engine.DeleteResult{}, fault.New(fault.Denied, "cannot delete %q", r.Name).WithHint("--force")
		}
		return engine.DeleteResult{Name: r.Name, Tip: "8888888bbbb", Trash: "refs/litterbox/trash/" + r.Name}, nil
	}}
	const a = "deleted a (was 8888888)\n  bring it back: litterbox trash restore a\n"
	wantOutcome(t, lb(t, e, "", "delete", "--force", "a", "gone", "half"), outcome{3, a + "deleted half\n", "litterbox: cannot find \"gone\"\n"})
	wantOutcome(t, lb(t, e, "", "delete", "a"), outcome{7, "", "litterbox: cannot delete \"a\"\n  try: --force\n"})
	asJSON := lb(t, e, "", "delete", "--force", "--json", "a", "half")
	golden(t, "json/delete.json", asJSON.Stdout)
}

func TestStopAndStart(t *testing.T) {
	e := &fake{
		stop: func(_, name string) error { return nil },
		start: func(_, name string, degraded bool) (engine.StartResult, error) {
			if !degraded {
				return engine.StartResult{}, errors.New("flag lost")
			}
			return engine.StartResult{Already: name == "runs", Notes: []string{"attached again"}}, nil
		},
	}
	wantOutcome(t, lb(t, e, "", "install", "fix", "jq", "./tool.deb"), outcome{0, "installed jq ./tool.deb in fix\n", ""})
	golden(t, "json/install.json", lb(t, e, "", "install", "fix", "jq", "--json").Stdout)
	wantOutcome(t, lb(t, e, "", "stop", "fix"), outcome{0, "stopped fix\n", ""})
	wantOutcome(t, lb(t, e, "", "start", "fix", "--allow-degraded"), outcome{0, "started fix\n", "note: attached again\n"})
	wantOutcome(t, lb(t, e, "", "start", "runs", "--allow-degraded"), outcome{0, "runs is running already\n", "note: attached again\n"})
}

func TestTrust(t *testing.T) {
	grants := []string{"mount /opt/sdk read-only"}
	e := &fake{trust: func(string) (engine.TrustResult, error) {
		return engine.TrustResult{Path: "/src/app/.litterbox.toml", Hash: "abc", Grants: grants}, nil
	}}
	wantOutcome(t, lb(t, e, "", "trust"), outcome{0, "trusted /src/app/.litterbox.toml\n  allows mount /opt/sdk read-only\n", ""})
	golden(t, "json/trust.json", lb(t, e, "", "trust", "--json").Stdout)
	grants = nil
	wantOutcome(t, lb(t, e, "", "trust"), outcome{0, "trusted /src/app/.litterbox.toml\n  nothing in it needs trust\n", ""})
}

func TestDoctor(t *testing.T) {
	report := engine.Report{Isolation: sandbox.IsolationFull, Checks: []engine.Check{
		{Name: "user namespaces", OK: true, Needed: true, Found: "allowed"},
		{Name: "cgroup v2", Found: "not delegated", Mend: "sudo loginctl enable-linger"},
	}}
	e := &fake{doctor: func() (engine.Report, error) { return report, nil }}
	got := lb(t, e, "", "doctor")
	golden(t, "text/doctor.txt", got.Stdout)
	if got.Code != 0 {
		t.Errorf("exit code %d on a good machine", got.Code)
	}
	golden(t, "json/doctor.json", lb(t, e, "", "doctor", "--json").Stdout)

	report = engine.Report{Checks: []engine.Check{{Name: "user namespaces", Needed: true, Found: "forbidden", Mend: "sudo sysctl -w kernel.unprivileged_userns_clone=1"}}}
	got = lb(t, e, "", "doctor")
	golden(t, "text/doctor-missing.txt", got.Stdout)
	if got.Code != 8 {
		t.Errorf("exit code %d on a machine that cannot isolate", got.Code)
	}
}

func TestVersionNeedsNoEngine(t *testing.T) {
	got := lb(t, nil, "", "version")
	if got.Code != 0 || !strings.HasPrefix(got.Stdout, "litterbox 1.2.3") {
		t.Errorf("%+v", got)
	}
	got = lb(t, nil, "", "version", "--json")
	if got.Code != 0 || !strings.Contains(got.Stdout, `"version": "1.2.3"`) {
		t.Errorf("%+v", got)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := lb(t, nil, "", "completion", shell); got.Code != 0 || !strings.Contains(got.Stdout, "litterbox") {
			t.Errorf("%s: exit code %d", shell, got.Code)
		}
	}
	if got := lb(t, nil, "", "completion", "tcsh"); got.Code != 2 {
		t.Errorf("%+v", got)
	}
	e := &fake{list: func(dir string, _ bool) ([]engine.Info, error) {
		if dir == "/broken" {
			return nil, errNotFound
		}
		return []engine.Info{info("fix"), info("fox"), info("other")}, nil
	}, goldens: []engine.Golden{{Name: "default"}, {Name: "fox"}, {Name: "fuller"}}}
	for _, c := range []struct{ args, want string }{
		{"exec f", "fix\nfox\n:4"},
		{"merge f", "fix\nfox\n:4"},
		{"delete fix o", "other\n:4"},
		{"cp o", "other:\n:2"},
		{"list x", ":4"},
		{"spawn 2 --from f", "fix\nfox\nfuller\n:4"},
		{"create x --golden f", "fox\nfuller\n:4"},
		{"-C /broken exec f", ":0"},
		{"completion z", "zsh\n:4"},
		{"exec --env", "--env\tset K=V in the environment of CMD, or K to what it is here; may be repeated\n--env-file\tset the variables of FILE, a K=V or K a line; - is standard input\n:4"},
	} {
		got := lb(t, e, "", append([]string{"__complete"}, strings.Fields(c.args)...)...)
		if got.Code != 0 || strings.TrimSpace(got.Stdout) != c.want {
			t.Errorf("%s completes to %q, want %q", c.args, got.Stdout, c.want)
		}
	}
}

// policyFake changes no rules.
type policyFake struct{ *fake }

func (*policyFake) ChangePolicy(context.Context, engine.PolicyRequest) (engine.Network, error) {
	return engine.Network{}, nil
}

// A rule for loopback opens no server of this machine, which is what it is
// probably meant for.
func TestAllowLoopback(t *testing.T) {
	e := &policyFake{&fake{}}
	for line, noted := range map[string]bool{
		"allow fix 127.0.0.1:5432":         true,
		"allow fix a.example localhost:80": true,
		"allow fix [::1]:80":               true,
		"allow fix ::1":                    true,
		"allow fix 192.0.2.10:5432":        false,
		"allow fix localhost.example":      false,
		"deny fix 127.0.0.1:5432":          false,
	} {
		got := lb(t, e, "", strings.Fields(line)...)
		if got.Code != 0 || strings.Contains(got.Stderr, " inside is the sandbox itself: ") != noted {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// compareFake compares.
type compareFake struct {
	*fake
	found []engine.Compared
}

func (f *compareFake) Compare(context.Context, engine.CompareRequest) ([]engine.Compared, error) {
	return f.found, nil
}

// The cost of model calls is shown beside the work done with them.
func TestCostBesideWork(t *testing.T) {
	e := &fake{log: func(string, string) ([]sandbox.Iteration, error) {
		return []sandbox.Iteration{
			{Number: 1, Kind: "exec", Message: "Before", Commit: "5555555eeee", StartedAt: now},
			{Number: 2, Kind: "checkpoint", Message: "Half", Commit: "6666666ffff", StartedAt: now, Cost: 250e6},
		}, nil
	}}
	wantOutcome(t, lb(t, e, "", "log", "fix"), outcome{0, "STEP  COMMIT   KIND        RESULT  CHANGED  TOOK  WHEN      COST SO FAR  MESSAGE\n" +
		"2     6666666  checkpoint  exit 0  0        0s    just now  $0.25        Half\n" +
		"1     5555555  exec        exit 0  0        0s    just now  -            Before\n", ""})
	both := []engine.Compared{{Name: "a", Commits: 1, Head: "5555555eeee", Cost: &engine.Cost{Calls: 1, Cost: 250e6}}, {Name: "b", Head: "6666666ffff"}}
	wantOutcome(t, lb(t, &compareFake{e, both}, "", "compare", "a", "b"), outcome{0, "NAME  COMMITS  FILES  LINES  EXIT  COMMAND  HEAD     COST\n" +
		"a     1        0      +0 -0  -              5555555  $0.25\n" +
		"b     0        0      +0 -0  -              6666666  -\n", ""})
}
