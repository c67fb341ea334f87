package engine

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// What a sandbox is told of the human, and what of the host is lent to it, is
// the caller's, whatever process works for it.
func TestSandboxSeesItsCaller(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	tools := filepath.Join(home, "go/bin")
	if err := os.MkdirAll(tools, 0o700); err != nil {
		t.Fatal(err)
	}
	records, err := store.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Store: records})
	p := e.place(&sandbox.Sandbox{ID: "fix-01234567", Name: "fix", Repository: "/somewhere/project"}, nil, nil)
	ctx := For(t.Context(), Caller{
		Env:  []string{"PATH=/usr/bin:" + tools, "SHELL=/bin/zsh", "TERM=other", "API_TOKEN=of-the-caller-alone", "HOME=/ignored"},
		Home: home, User: "ann",
	})
	caller := callerOf(ctx)
	spec := driver.Spec{Home: homeInside(caller, p.record.Repository), User: innerUser(caller, driver.Ownership{UID: 7, GID: 8})}
	e.addSurroundings(p, caller, &spec, nil)
	search := "/usr/bin:" + tools + ":" + home + "/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin"
	want := map[string]string{
		"HOME": home, "USER": "ann", "LOGNAME": "ann", "SHELL": "/bin/zsh", "PATH": search, "LITTERBOX": "fix",
	}
	if diff := cmp.Diff(want, spec.Env); diff != "" {
		t.Errorf("environment (- want, + got):\n%s", diff)
	}
	if diff := cmp.Diff([]driver.Mount{{Source: tools, Target: tools}}, spec.Mounts); diff != "" {
		t.Errorf("mounts (- want, + got):\n%s", diff)
	}
	if got := clientEnv(caller.Env, false); !slices.Equal(got, []string{"TERM=other"}) {
		t.Errorf("a command gets %q", got)
	}
	if !slices.Contains(caller.secrets(), "of-the-caller-alone") {
		t.Error("the caller's secrets are not redacted")
	}
	_, call, err := e.record(ctx, "prune", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if call.entry.Who.User != "ann" {
		t.Errorf("the audit log names %q", call.entry.Who.User)
	}
	if err := call.end("", nil, nil); err != nil {
		t.Error(err)
	}
}

// callerFile is the one file of the engine that reads the process's own
// environment, home and user.
const callerFile = "caller.go"

// processReads are the functions that only callerFile may name.
var processReads = []string{
	"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.UserHomeDir", "os.UserConfigDir", "os.UserCacheDir", "user.Current",
}

func TestProcessIsReadInOnePlace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			selected, ok := node.(*ast.SelectorExpr)
			if !ok || !slices.Contains(processReads, fmt.Sprint(selected.X)+"."+selected.Sel.Name) {
				return true
			}
			if file == callerFile {
				seen++
				return true
			}
			t.Errorf("%s: %s.%s reads this process: take it from callerOf(ctx)", set.Position(node.Pos()), selected.X, selected.Sel.Name)
			return true
		})
	}
	if seen == 0 {
		t.Error("no reading was found in " + callerFile + ": this test sees nothing")
	}
}
