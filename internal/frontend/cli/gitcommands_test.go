package cli_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

func TestGitArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want engine.MergeRequest
	}{
		{[]string{"apply", "fix"}, engine.MergeRequest{Args: []string{}}},
		{[]string{"apply", "fix", "--strategy=ours"}, engine.MergeRequest{Args: []string{"--strategy=ours"}}},
		{[]string{"apply", "--squash", "fix", "--abort"}, engine.MergeRequest{Args: []string{"--squash", "--abort"}}},
		{[]string{"apply", "fix", "-m", "a message", "-C"}, engine.MergeRequest{Args: []string{"-m", "a message", "-C"}}},
		{[]string{"merge", "--yes", "fix", "--run-hooks", "--no-ff"}, engine.MergeRequest{Args: []string{"--no-ff"}, Yes: true, RunHooks: true, Delete: true}},
		{[]string{"merge", "fix", "--", "--yes"}, engine.MergeRequest{Args: []string{"--", "--yes"}, Delete: true}},
		{[]string{"merge", "fix", "-h"}, engine.MergeRequest{Args: []string{"-h"}, Delete: true}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var got engine.MergeRequest
			e := &fake{merge: func(r engine.MergeRequest) (engine.MergeResult, error) { got = r; return engine.MergeResult{}, nil }}
			wantOutcome(t, lb(t, e, "", c.args...), outcome{})
			c.want.Dir, c.want.Name = here(t), "fix"
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(engine.MergeRequest{}, "Stdin", "Stdout", "Stderr")); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if got.Confirm != nil {
				t.Error("asks where nobody can answer")
			}
		})
	}
	for _, name := range []string{"diff", "apply", "merge"} {
		wantOutcome(t, lb(t, nil, "", name, "--stat"), outcome{
			2, "", fmt.Sprintf("litterbox: cannot run litterbox %s: no sandbox name\n  try: litterbox %s --help\n", name, name),
		})
	}
}

func TestMergeResults(t *testing.T) {
	result := engine.MergeResult{
		Landed: true, Deleted: true, Notes: []string{"hooks were off"},
		Risks: []engine.Risk{{Path: ".husky/post-merge", Class: "git", Reason: "run by git commands", Rank: 1}},
	}
	e := &fake{merge: func(r engine.MergeRequest) (engine.MergeResult, error) {
		fmt.Fprintln(r.Stdout, "Fast-forward")
		return result, nil
	}}
	wantOutcome(t, lb(t, e, "", "merge", "fix"), outcome{0, "Fast-forward\nmerged fix and deleted the sandbox\n", "note: hooks were off\n"})

	asJSON := lb(t, e, "", "merge", "fix", "--json")
	golden(t, "json/merge.json", asJSON.Stdout)
	if want := "Fast-forward\nnote: hooks were off\n"; asJSON.Stderr != want {
		t.Errorf("stderr %q, want %q", asJSON.Stderr, want)
	}
	result = engine.MergeResult{ExitCode: 1}
	wantOutcome(t, lb(t, e, "", "merge", "fix"), outcome{1, "Fast-forward\n", ""})
}

func TestDiff(t *testing.T) {
	var got engine.DiffRequest
	code, out := 1, "+added\n"
	e := &fake{diff: func(r engine.DiffRequest) (int, error) {
		got = r
		_, err := io.WriteString(r.Stdout, out)
		if r.Risky != nil && out != "" {
			r.Risky([]engine.Risk{{Path: "Makefile", Class: "build", Reason: "run by make", Rank: 2}})
		}
		return code, err
	}}
	wantOutcome(t, lb(t, e, "", "diff", "fix", "--stat", "--exit-code", "--", "src"), outcome{1, "+added\n", ""})
	if diff := cmp.Diff([]string{"--stat", "--exit-code", "--", "src"}, got.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}

	code, out = 0, "3\t1\tsrc/a b\x00-\t-\tlogo\u009b\t.png\x00"
	asJSON := lb(t, e, "", "diff", "--json", "fix", "--", "src")
	golden(t, "json/diff.json", asJSON.Stdout)
	if diff := cmp.Diff([]string{"--numstat", "-z", "--no-renames", "--no-color", "--", "src"}, got.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	out = ""
	wantOutcome(t, lb(t, e, "", "diff", "fix", "--json"), outcome{0, "{\n  \"name\": \"fix\",\n  \"files\": [],\n  \"risks\": []\n}\n", ""})
	out = " src/a | 3 +++\x00"
	if bad := lb(t, e, "", "diff", "fix", "--json", "--stat"); bad.Code != 2 || bad.Stdout != "" {
		t.Errorf("%+v", bad)
	}
}
