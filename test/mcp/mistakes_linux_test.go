package mcp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// step is a call that a model makes.
type step struct {
	tool string
	args args
}

// mistakes are calls that models get wrong at first, what the answer says, and
// the call that a model makes from it. That one must succeed: a mistake costs
// one step, or none if it is understood.
func mistakes(repository string) []struct {
	wrong step
	kind  string // empty: it is understood
	says  string
	then  step
} {
	const why = "Try"
	edit := func(old, new string) args { return args{"path": "code.go", "old": old, "new": new, "message": why} }
	return []struct {
		wrong step
		kind  string
		says  string
		then  step
	}{
		// Names of arguments that other tools have.
		{step{"sandbox-exec", args{"cmd": "true", "message": why}}, "", "exit 0", step{}},
		{step{"sandbox-exec", args{"script": "true", "description": why}}, "", "exit 0", step{}},
		{step{"sandbox-exec", args{"command": "pwd", "message": why, "cwd": "sub"}}, "", "/sub", step{}},
		{step{"sandbox-exec", args{"command": "pwd", "message": why, "workdir": repository + "/sub"}}, "", "/sub", step{}},
		{step{"sandbox-exec", args{"command": "true", "message": why, "timeout": "30"}}, "", "exit 0", step{}},
		{step{"sandbox-read", args{"file_path": "code.go"}}, "", "package code", step{}},
		{step{"sandbox-read", args{"filename": "code.go", "start_line": "1", "endLine": 1.0}}, "", "package code", step{}},
		{step{"sandbox-write", args{"file_path": "w1", "contents": "x", "summary": why}}, "", "wrote 1 bytes", step{}},
		{step{"sandbox-write", args{"path": "w2", "file_text": "x", "commit_message": why}}, "", "wrote 1 bytes", step{}},
		{step{"sandbox-edit", args{"file_path": "words", "old_string": "one", "new_string": "1", "msg": why}}, "", "replaced at line 1", step{}},
		{step{"sandbox-edit", args{"path": "words", "oldText": "two", "newText": "2", "message": why}}, "", "replaced at line 2", step{}},
		{step{"sandbox-edit", args{"path": "words", "old_str": "x", "new_str": "y", "replaceAll": "true", "message": why}}, "", "replaced 2 times", step{}},
		{step{"sandbox-edit", args{"path": "words", "message": why, "edits": []args{{"old_string": "three", "new_string": "3"}}}}, "", "replaced at line 3", step{}},
		{step{"sandbox-edit", args{"path": "words", "message": why, "edits": `[{"old":"four","new":"4"}]`}}, "", "replaced at line 4", step{}},
		{step{"sandbox-search", args{"query": "package"}}, "", "code.go:1:", step{}},
		{step{"sandbox-search", args{"regex": "PACKAGE", "case_insensitive": "true"}}, "", "code.go:1:", step{}},
		{step{"sandbox-search", args{"pattern": "package", "include": "*.go", "max_results": 5}}, "", "code.go:1:", step{}},
		{step{"sandbox-files", args{"directory": nil, "glob_pattern": "*.go"}}, "", "code.go", step{}},
		{step{"sandbox-files", args{"path": "sub/"}}, "", "sub/deep.go", step{}},
		{step{"sandbox-files", args{"path": "./sub"}}, "", "sub/deep.go", step{}},
		{step{"sandbox-milestone", args{"msg": why}}, "", "litterbox merge fix", step{}},
		{step{"sandbox-list", args{"path": nil}}, "", "fix", step{}},
		// Tools with other names elsewhere.
		{step{"bash", args{"command": "true"}}, "not_found", "sandbox-exec", step{"sandbox-exec", args{"command": "true", "message": why}}},
		{step{"apply_patch", args{"input": "*** Begin Patch"}}, "not_found", "git apply --recount", step{"sandbox-exec", args{
			"command": "git apply --recount <<'EOF'\n--- a/patched\n+++ b/patched\n@@ -1 +1 @@\n-old\n+new\nEOF\n", "message": why,
		}}},
		{step{"Read", args{"file_path": "code.go"}}, "not_found", "sandbox-read", step{"sandbox-read", args{"path": "code.go"}}},
		{step{"Edit", args{}}, "not_found", "sandbox-edit", step{"sandbox-edit", edit("B = 1", "B = 2")}},
		{step{"grep", args{}}, "not_found", "sandbox-search", step{"sandbox-search", args{"pattern": "x"}}},
		{step{"sandbox-merge", args{}}, "not_found", "the human merges", step{"sandbox-milestone", args{"message": why}}},
		{step{"mcp__litterbox__sandbox-read", args{"path": "code.go"}}, "", "package code", step{}},
		{step{"sandbox_files", args{"path": "sub"}}, "", "sub/deep.go", step{}},
		// Missing or wrong arguments.
		{step{"sandbox-exec", args{"command": "true"}}, "invalid", "message is missing", step{"sandbox-exec", args{"command": "true", "message": why}}},
		{step{"sandbox-exec", args{"command": "true", "message": why, "run_in_background": true}}, "invalid", `no argument "run_in_background"`, step{"sandbox-exec", args{"command": "true", "message": why}}},
		{step{"sandbox-exec", args{"command": "true", "message": why, "dir": "none"}}, "invalid", "no such file", step{"sandbox-exec", args{"command": "true", "message": why, "dir": "sub"}}},
		{step{"sandbox-exec", args{"command": "true", "message": why, "timeout": 1e9}}, "invalid", "between 0 and", step{"sandbox-exec", args{"command": "true", "message": why, "timeout": 60}}},
		{step{"sandbox-read", args{}}, "invalid", "path is missing", step{"sandbox-read", args{"path": "code.go"}}},
		{step{"sandbox-read", args{"path": "sub"}}, "invalid", "sandbox-files", step{"sandbox-files", args{"path": "sub"}}},
		{step{"sandbox-read", args{"path": "none.go"}}, "not_found", "sandbox-files", step{"sandbox-files", args{}}},
		{step{"sandbox-read", args{"path": repository + "/sub/none.go"}}, "not_found", `cannot read "sub/none.go"`, step{"sandbox-files", args{"path": "sub"}}},
		{step{"sandbox-read", args{"path": ".hidden"}}, "denied", "sandbox-exec with cat", step{"sandbox-exec", args{"command": "cat .hidden", "message": why}}},
		{step{"sandbox-read", args{"path": "code.go", "line": 2, "end_line": 1}}, "invalid", "end_line is 1", step{"sandbox-read", args{"path": "code.go", "line": 2, "end_line": 2}}},
		{step{"sandbox-files", args{"path": "code.go"}}, "invalid", "sandbox-read with this path", step{"sandbox-read", args{"path": "code.go"}}},
		{step{"sandbox-search", args{"pattern": "(?=x)"}}, "invalid", "invalid or unsupported Perl syntax", step{"sandbox-search", args{"pattern": "x"}}},
		{step{"sandbox-search", args{"pattern": `package\n`}}, "invalid", "line break", step{"sandbox-search", args{"pattern": "package"}}},
		{step{"sandbox-search", args{"pattern": "x", "glob": "*.[ch"}}, "invalid", "without a ]", step{"sandbox-search", args{"pattern": "x", "glob": "*.[ch]"}}},
		{step{"sandbox-files", args{"glob": "[a-"}}, "invalid", "without a ]", step{"sandbox-files", args{"glob": "[a-c]*"}}},
		{step{"sandbox-files", args{"glob": "*.{go,ts"}}, "invalid", "without a }", step{"sandbox-files", args{"glob": "*.{go,ts}"}}},
		{step{"sandbox-search", args{"pattern": "x", "path": "none"}}, "not_found", "sandbox-files", step{"sandbox-files", args{}}},
		{step{"sandbox-write", args{"path": ".git/hooks/post-commit", "content": "x", "message": why}}, "denied", "git commands", step{"sandbox-exec", args{"command": "git config core.hooksPath", "message": why}}},
		{step{"sandbox-write", args{"path": "/usr/bin/x", "content": "x", "message": why}}, "denied", "below the project", step{"sandbox-write", args{"path": "w3", "content": "x", "message": why}}},
		{step{"sandbox-write", args{"path": "sub", "content": "x", "message": why}}, "invalid", "directory", step{"sandbox-write", args{"path": "sub/w4", "content": "x", "message": why}}},
		{step{"sandbox-edit", edit("A  =  1", "A = 3")}, "not_found", "A = 1", step{"sandbox-edit", edit("A = 1", "A = 3")}},
		{step{"sandbox-edit", edit("var C = 7", "x")}, "not_found", "comes nearest", step{"sandbox-edit", edit("var C = 5", "var C = 6")}},
		{step{"sandbox-edit", args{"path": "quotes", "old": `say "so" - now`, "new": "x", "message": why}}, "not_found", "characters that look alike", step{"sandbox-edit", args{"path": "quotes", "line": 1, "new": "x", "message": why}}},
		{step{"sandbox-edit", args{"path": "latin", "old": "café crème", "new": "tea", "message": why}}, "not_found", "name the line", step{"sandbox-edit", args{"path": "latin", "line": 1, "new": "tea", "message": why}}},
		{step{"sandbox-edit", edit("var", "let")}, "invalid", "name its line", step{"sandbox-edit", args{"path": "code.go", "old": "var", "new": "let", "line": 3, "message": why}}},
		{step{"sandbox-edit", edit("", "x")}, "invalid", "sandbox-write", step{"sandbox-write", args{"path": "w5", "content": "x", "message": why}}},
		{step{"sandbox-edit", edit("same", "same")}, "invalid", "the same", step{"sandbox-edit", edit("let", "var")}},
		{step{"sandbox-edit", args{"path": "none.go", "old": "a", "new": "b", "message": why}}, "not_found", "sandbox-files", step{"sandbox-files", args{}}},
		{step{"sandbox-diff", args{"path": "none.go"}}, "not_found", "sandbox-files", step{"sandbox-files", args{}}},
		{step{"sandbox-diff", args{"since": "yesterday"}}, "invalid", "a step's number", step{"sandbox-diff", args{"since": "1"}}},
		{step{"sandbox-diff", args{"since": 1}}, "", "", step{}},
		{step{"sandbox-diff", args{"with": "nothing"}}, "not_found", "sandbox-list", step{"sandbox-list", args{}}},
		{step{"sandbox-wait", args{"command": 99}}, "not_found", "sandbox-log", step{"sandbox-log", args{}}},
		{step{"sandbox-open", args{"name": "nothing"}}, "not_found", "sandbox-list", step{"sandbox-list", args{}}},
		{step{"sandbox-create", args{"name": "fix"}}, "already_exists", "sandbox-open", step{"sandbox-open", args{"name": "fix"}}},
		{step{"sandbox-create", args{"name": "based", "base": "nothing"}}, "not_found", "leave base out", step{"sandbox-open", args{"name": "fix"}}},
		{step{"sandbox-diff", args{"path": ".nothing"}}, "", "did not check", step{}},
		{step{"sandbox-create", args{"name": "…"}}, "invalid", "letter or digit", step{"sandbox-open", args{"name": "fix"}}},
		{step{"sandbox-read", args{"path": "code.go", "sandbox": "other"}}, "not_found", "sandbox-open", step{"sandbox-read", args{"path": "code.go"}}},
		{step{"sandbox-service", args{"action": "start", "service": "db"}}, "not_found", "action status", step{"sandbox-service", args{"action": "status"}}},
		{step{"sandbox-service", args{"action": "launch"}}, "invalid", "must be start", step{"sandbox-service", args{"action": "status"}}},
		{step{"sandbox-milestone", args{}}, "invalid", "message is missing", step{"sandbox-milestone", args{"message": why}}},
	}
}

func TestMistakesCostOneStep(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	c.do(`mkdir sub; echo 'package deep' >sub/deep.go; printf 'package code\n\nvar A = 1\nvar B = 1\nvar C = 5\n' >code.go; echo old >patched
		printf 'say \342\200\234so\342\200\235 \342\200\224 now\n' >quotes; printf 'caf\351 cr\350me\n' >latin
		printf 'one\ntwo\nthree\nfour\nx x\n' >words; echo secret >.hidden`)
	all := mistakes(h.Repo)
	page := strings.Builder{}
	page.WriteString(mistakesHead)
	most := 0
	for _, m := range all {
		got := c.call(m.wrong.tool, m.wrong.args)
		if got.kind != m.kind || !strings.Contains(got.text, m.says) {
			t.Errorf("%s %v: kind %q, want %q with %q: %s", m.wrong.tool, m.wrong.args, got.kind, m.kind, m.says, got.text)
		}
		row := mistake{call: m.wrong.shown(h.Repo), says: m.says}
		if m.then.tool != "" {
			row.steps, row.then = 1, m.then.shown(h.Repo)
			if next := c.call(m.then.tool, m.then.args); next.kind != "" || next.num("exit_code") > 1 {
				t.Errorf("after %s %v: %s %v: %s", m.wrong.tool, m.wrong.args, m.then.tool, m.then.args, next.text)
			}
		} else if m.kind != "" {
			t.Errorf("%s %v is refused, and no call recovers", m.wrong.tool, m.wrong.args)
		}
		most = max(most, row.steps)
		page.WriteString(row.line())
	}
	if len(all) < 60 || most != 1 {
		t.Errorf("%d mistakes, of which the worst takes %d steps; want 60 and one", len(all), most)
	}
	const file = "../../docs/reference/tools-mistakes.md"
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), page.String()); diff != "" {
		t.Errorf("%s is not what was seen; rewrite it with -update (-want +got):\n%s", file, diff)
	}
}

var update = flag.Bool("update", false, "rewrite docs/reference/tools-mistakes.md")

const mistakesHead = `# What a mistake costs an agent

<!-- Made by: go test ./test/mcp -run Mistakes -update -->

Calls that models get wrong at first, each made against the real server: what the answer says, the call that it leads to, which has to succeed, and how many steps that costs. Zero means that the call is understood as it is.

| call | the answer says | next call | steps |
|---|---|---|---|
`

// mistake is a row of that page.
type mistake struct {
	call, says, then string
	steps            int
}

func (m mistake) line() string {
	cell := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %d |\n", cell(m.call), cell(strings.TrimSpace(m.says)), cell(m.then), m.steps)
}

// shown returns a call as shown on the page: without the message that every
// change has, and on one line.
func (s step) shown(repository string) string {
	short := args{}
	for name, value := range s.args {
		if name != "message" || s.tool == "sandbox-milestone" {
			short[name] = value
		}
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(short); err != nil {
		return err.Error()
	}
	return s.tool + " " + strings.ReplaceAll(strings.TrimSpace(text.String()), repository, "PROJECT")
}
