package mcp

// register adds every tool.
//
// To add one: 1. a file with its arguments, its result and a run function,
// 2. a line below, 3. its schema: go test ./internal/frontend/mcp -update,
// 4. a test of it in test/mcp. Descriptions say when to use it and what comes
// back, in as few words as that takes: a model reads all of them.
func register(r *registrar) {
	add(r, tool{
		name: "sandbox-create", title: "Create a sandbox", begins: true, additive: true,
		description: "Create an isolated copy of this repository on a branch of its own and work in it from then on. Call it first. Returns name, branch and path.",
	}, runCreate)
	add(r, tool{
		name: "sandbox-open", title: "Go on in a sandbox", begins: true, additive: true, idempotent: true,
		description: "Go on in an existing sandbox, after a restart or when its name is known. Returns name, branch, path and the last steps.",
	}, runOpen)
	add(r, tool{
		name: "sandbox-list", title: "List sandboxes", reads: true, apart: true,
		description: "List the sandboxes of this repository: name, state, who works there.",
	}, runList)
	add(r, tool{
		name: "sandbox-exec", title: "Run a command", open: true,
		description: "Run a shell command in the sandbox and commit what it changed. Returns output, exit code, commit and changed files. A command that takes long goes on; then call sandbox-wait.",
	}, runExec)
	add(r, tool{
		name: "sandbox-wait", title: "Wait for a command", open: true,
		description: "Go on waiting for a command that sandbox-exec left running, or stop it. Returns what sandbox-exec does.",
	}, runWait)
	add(r, tool{
		name: "sandbox-read", title: "Read a file", reads: true,
		description: "Read a file of the sandbox, in pages: go on with offset = next_offset. Hidden files are refused.",
	}, runRead)
	add(r, tool{
		name: "sandbox-write", title: "Write a file", idempotent: true,
		description: "Write a whole file and commit. For a change in an existing file use sandbox-edit.",
	}, runWrite)
	add(r, tool{
		name: "sandbox-edit", title: "Edit a file",
		description: "Replace a text that occurs exactly once in a file, and commit. Returns the line.",
	}, runEdit)
	add(r, tool{
		name: "sandbox-files", title: "List files", reads: true,
		description: "List files below a directory by glob, sorted. Hidden and git-ignored files are left out.",
	}, runFiles)
	add(r, tool{
		name: "sandbox-search", title: "Search files", reads: true,
		description: "Search file contents for a regular expression (RE2). Returns path, line and text. Hidden and git-ignored files are left out.",
	}, runSearch)
	add(r, tool{
		name: "sandbox-diff", title: "Show the changes", reads: true,
		description: "Show what the sandbox changed since it was created.",
	}, runDiff)
	add(r, tool{
		name: "sandbox-log", title: "Show the steps", reads: true,
		description: "Show the last steps in the sandbox: message, commit, exit code.",
	}, runLog)
	add(r, tool{
		name: "sandbox-milestone", title: "Finish a task", additive: true,
		description: "Squash all steps since the last milestone into one commit. Call it when a task is done.",
	}, runMilestone)
	add(r, tool{
		name: "sandbox-service", title: "Control a service", idempotent: true,
		description: "Start, stop or restart a service of the sandbox, or get its status or logs.",
	}, runService)
}
