package mcp_test

import (
	"strings"
	"testing"
)

// Answers name steps by numbers that the tools take, never by a commit that git
// inside does not have; git inside says once why it shows no steps; damage to
// it is reported with its repair; and a milestone names large files.
func TestHistoryInside(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	run := func(command string) answer { return c.must("sandbox-exec", args{"command": command, "message": "Try"}) }
	wrote := c.must("sandbox-write", args{"path": "a", "content": "a\n", "message": "Write a"})
	if wrote.text != "wrote 2 bytes to a, step 1\n" {
		t.Errorf("%q", wrote.text)
	}
	if got := c.must("sandbox-exec", args{"command": "echo b >b", "message": "Write b"}); got.text != "exit 0; step 2: b\n" {
		t.Errorf("%q", got.text)
	}
	if got := c.must("sandbox-diff", args{"since": "1"}); !strings.Contains(got.text, "b: +1 -0") || strings.Contains(got.text, "a: +1") {
		t.Errorf("since step 1: %s", got.text)
	}
	const why = "the steps are in sandbox-log"
	if got := run("git log --oneline"); !strings.Contains(got.text, why) {
		t.Errorf("%s", got.text)
	}
	if got := run("git log --oneline"); strings.Contains(got.text, why) {
		t.Errorf("said twice: %s", got.text)
	}
	if got := run("rm -rf .git"); !strings.Contains(got.text, ".git was removed") {
		t.Errorf("%s", got.text)
	} else if _, mend, ok := strings.Cut(got.text, "To repair it, run inside: "); !ok {
		t.Errorf("%s", got.text)
	} else if next := run("true"); strings.Contains(next.text, "removed") {
		t.Errorf("said twice: %s", next.text)
	} else if next := run("git status"); !strings.Contains(next.text, ".git was removed") {
		t.Errorf("git fails without a word of why: %s", next.text)
	} else if next := run(strings.TrimSpace(mend)); strings.Contains(next.text, "removed") {
		t.Errorf("%s", next.text)
	}
	c.do("head -c 3000000 /dev/urandom >data.bin; head -c 20 /dev/urandom >small.bin")
	mile := c.must("sandbox-milestone", args{"message": "Do it"})
	if !strings.HasPrefix(mile.text, "milestone of fix, step ") || !strings.Contains(mile.text, "large for git, which keeps every version for ever: data.bin (3.0 MB)\n") {
		t.Errorf("%s", mile.text)
	}
	// Files that look generated are proposed for .gitignore once.
	c.do("mkdir __pycache__; echo 1 >__pycache__/a.pyc")
	if got := c.must("sandbox-milestone", args{"message": "Run it"}); !strings.Contains(got.text, "this looks generated: __pycache__/a.pyc;") || !strings.HasSuffix(strings.Split(got.text, "\n")[2], ": __pycache__/") {
		t.Errorf("%s", got.text)
	}
	c.do("echo 1 >__pycache__/b.pyc; echo 1 >x.log")
	if got := c.must("sandbox-milestone", args{"message": "Run it again"}); !strings.Contains(got.text, "note: this looks generated: x.log;") {
		t.Errorf("%s", got.text)
	}
}
