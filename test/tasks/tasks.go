// Package tasks has three tasks for a model in sixteen steps: a feature with
// its test, the search for a bug in a server, and a rename across files. They
// show the cost of litterbox's tools beside others', and in each client.
//
// It makes no call itself: the driver of the tools does.
package tasks

import (
	"fmt"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// Args are the arguments of a call.
type Args = map[string]any

// Call is one call of a tool.
type Call struct {
	Tool string
	Args Args
}

// Step is one of the sixteen steps, as each side does it.
type Step struct {
	Task  string
	Ours  Call
	Says  string // the answer to Ours contains this
	Fails bool   // the command fails: the bug shows that way
	// Theirs are calls of the filesystem server, which runs nothing and commits
	// nothing: "shell" stands for a client's own shell beside it.
	Theirs []Call
}

// Sandbox is the name of the sandbox, and of its branch, in which the steps work.
const Sandbox = "tasks"

// Sixteen lists the steps. They work on the project that Project makes.
func Sixteen() []Step {
	const why = "Do the next step of the task"
	run := func(command string) Call { return Call{"sandbox-exec", Args{"command": command, "message": why}} }
	sh := func(command string) []Call { return []Call{{"shell", Args{"command": command}}} }
	edit := func(path, old, text string) (Call, []Call) {
		return Call{"sandbox-edit", Args{"path": path, "old": old, "new": text, "message": why}},
			[]Call{{"edit_file", Args{"path": path, "edits": []Args{{"oldText": old, "newText": text}}}}}
	}
	const check = "from calc import double\n\n\ndef test_double():\n    assert double(2) == 4\n\n\ntest_double()\n"
	const feature, debug, rename = "feature with a test", "debugging a server", "rename across files"
	add, addBeside := edit("calc.py", "def one():", "def double(n):\n    return 2 * n\n\n\ndef one():")
	mend, mendBeside := edit("server.py", "port = 80", "port = 8080")
	return []Step{
		{Task: feature, Ours: Call{"sandbox-create", Args{"name": Sandbox}}, Says: Sandbox, Theirs: sh("git switch -qc " + Sandbox)},
		{Task: feature, Ours: Call{"sandbox-read", Args{"path": "calc.py"}}, Says: "def one():", Theirs: []Call{{"read_text_file", Args{"path": "calc.py"}}}},
		{Task: feature, Ours: add, Says: "replaced at line 1", Theirs: addBeside},
		{
			Task: feature, Ours: Call{"sandbox-write", Args{"path": "check.py", "content": check, "message": why}}, Says: "wrote",
			Theirs: []Call{{"write_file", Args{"path": "check.py", "content": check}}},
		},
		{Task: feature, Ours: run("python3 check.py"), Says: "exit 0", Theirs: sh("python3 check.py")},
		{Task: feature, Ours: Call{"sandbox-milestone", Args{"message": "Double numbers"}}, Says: "litterbox merge " + Sandbox, Theirs: sh("git add -A && git commit -qm 'Double numbers'")},
		{Task: debug, Ours: Call{"sandbox-files", Args{"glob": "*.py"}}, Says: "server.py", Theirs: []Call{{"search_files", Args{"path": ".", "pattern": "*.py"}}}},
		{Task: debug, Ours: run("python3 server.py --check"), Says: "cannot listen on port 80", Fails: true, Theirs: sh("python3 server.py --check")},
		{Task: debug, Ours: Call{"sandbox-search", Args{"pattern": "port"}}, Says: "server.py:3", Theirs: sh("grep -rn port --include=*.py .")},
		{Task: debug, Ours: mend, Says: "replaced at line 3", Theirs: mendBeside},
		{Task: debug, Ours: run("python3 server.py --check"), Says: "listens on 8080", Theirs: sh("python3 server.py --check")},
		{Task: rename, Ours: Call{"sandbox-search", Args{"pattern": `\bone\b`}}, Says: "user7.py:1", Theirs: sh(`grep -rnw one --include=*.py .`)},
		{Task: rename, Ours: run(`sed -i 's/\bone\b/uno/g' *.py`), Says: "exit 0", Theirs: sh(`sed -i 's/\bone\b/uno/g' *.py`)},
		{Task: rename, Ours: run("python3 user0.py && python3 check.py"), Says: "exit 0", Theirs: sh("python3 user0.py && python3 check.py")},
		{Task: rename, Ours: Call{"sandbox-diff", Args{"since": "milestone"}}, Says: "user7.py", Theirs: sh("git diff")},
		{
			Task: rename, Ours: Call{"sandbox-milestone", Args{"message": "Listen on a free port, and say uno"}}, Says: "litterbox merge " + Sandbox,
			Theirs: sh("git add -A && git commit -qm 'Listen on a free port, and say uno'"),
		},
	}
}

// Project commits the project that the steps work on.
func Project(h *program.Host) {
	h.Put(filepath.Join(h.Repo, "calc.py"), "def one():\n    return 1\n")
	h.Put(filepath.Join(h.Repo, "server.py"), "import sys\n\nport = 80\nif port < 1024:\n    sys.exit('cannot listen on port %d: not allowed' % port)\nprint('listens on', port)\n")
	for i := range 16 {
		h.Put(filepath.Join(h.Repo, fmt.Sprintf("user%d.py", i)), "from calc import one\n\nprint(one())\n")
	}
	h.Put(filepath.Join(h.Repo, ".gitignore"), "__pycache__/\n")
	h.Git("add", ".")
	h.Git("commit", "-qm", "A project")
}

// Check returns what the branch lacks of the three tasks, or "".
func Check(h *program.Host) string {
	for file, want := range map[string]string{
		"calc.py":   "def double(n):\n    return 2 * n\n\n\ndef uno():\n    return 1\n",
		"server.py": "import sys\n\nport = 8080\nif port < 1024:\n    sys.exit('cannot listen on port %d: not allowed' % port)\nprint('listens on', port)\n",
		"user7.py":  "from calc import uno\n\nprint(uno())\n",
	} {
		if got := h.Command(h.Repo, "git", "show", Sandbox+":"+file); got.Stdout != want {
			return fmt.Sprintf("%s is %q, want %q\n%s", file, got.Stdout, want, got.Stderr)
		}
	}
	return ""
}
