package mcp

// register adds every tool.
//
// To add one: 1. a file with its arguments, its result and a run function, 2. a
// line below, 3. its schema: go test ./internal/frontend/mcp -update, 4. a test of
// it in test/mcp, 5. its name in README.md. Descriptions say when to use it and
// what a model gets wrong at first, in as few words as possible: a model reads all
// of them.
//
// A tool that changes nothing stands in readsOnly too.
func register(r *registrar) {
	add(r, tool{
		name: "sandbox-create", begins: true, additive: true,
		description: "Create an isolated copy of this repository on its own branch, and work in it. Call it first.",
	}, runCreate)
	add(r, tool{
		name: "sandbox-open", begins: true, additive: true, idempotent: true,
		description: "Go on in an existing sandbox. A later call may name another one as sandbox.",
	}, runOpen)
	add(r, tool{
		name: "sandbox-list", apart: true,
		description: "List the sandboxes of this repository and who works there.",
	}, runList)
	add(r, tool{
		name: "sandbox-exec", open: true,
		description: "Run a bash command (pipefail is on) and commit what it changed. Each call is a new shell in the project: directory and variables do not persist. No root, apt, docker or git push. Do not pipe into head or tail: long output is shortened and kept in a file. Many edits at once: sed, or git apply --recount.",
	}, runExec)
	add(r, tool{
		name: "sandbox-wait", open: true,
		description: "Go on waiting for a command that sandbox-exec left running, or stop it.",
	}, runWait)
	add(r, tool{
		name:        "sandbox-read",
		description: "Read a file, in pages or by lines. Hidden files: sandbox-exec with cat.",
	}, runRead)
	add(r, tool{
		name: "sandbox-write", idempotent: true,
		description: "Write a whole file and commit. To change an existing file use sandbox-edit.",
	}, runWrite)
	add(r, tool{
		name:        "sandbox-edit",
		description: "Replace text in a file and commit.",
	}, runEdit)
	add(r, tool{
		name:        "sandbox-files",
		description: "List files by glob. Hidden and git-ignored files are left out.",
	}, runFiles)
	add(r, tool{
		name:        "sandbox-search",
		description: "Search file contents by regular expression (RE2, line by line). Hidden and git-ignored files are left out.",
	}, runSearch)
	add(r, tool{
		name:        "sandbox-diff",
		description: "Show what the sandbox changed.",
	}, runDiff)
	add(r, tool{
		name:        "sandbox-log",
		description: "Show the last steps, newest first.",
	}, runLog)
	add(r, tool{
		name: "sandbox-milestone", additive: true,
		description: "Squash all steps since the last milestone into one commit for the human to review. Call it when a task is done.",
	}, runMilestone)
	add(r, tool{
		name: "sandbox-snapshot", additive: true,
		description: "Keep all files as they are, ignored ones too. sandbox-rewind returns to it.",
	}, runSnapshot)
	add(r, tool{
		name:        "sandbox-rewind",
		description: "Return to a step or a snapshot. What is there now is kept as a snapshot.",
	}, runRewind)
	add(r, tool{
		name: "sandbox-fork", additive: true,
		description: "Make a second sandbox with everything this one holds, to try another way. Compare with sandbox-diff.",
	}, runFork)
	add(r, tool{
		name:        "sandbox-update",
		description: "Merge what the human's branch has gained since.",
	}, runUpdate)
	add(r, tool{
		name: "sandbox-service", idempotent: true,
		description: "Start, stop or restart a configured service (a database, a web server), or get its status or logs.",
	}, runService)
}

// readsOnly reports whether a tool changes nothing.
func readsOnly(name string) bool {
	switch name {
	case "sandbox-list", "sandbox-read", "sandbox-files", "sandbox-search", "sandbox-diff", "sandbox-log":
		return true
	}
	return false
}
