package cli

// origin is a command, tool or operation that a design names, and its counterpart
// here: a command line in which lower-case words are commands, capitals are
// arguments and dashes begin flags. Empty means that there is deliberately nothing,
// for the reason in the note. until is the stopgap while it is planned.
type origin struct{ design, there, here, note, until string }

// origins is every command of the four designs. Whether litterbox has it yet
// is not said here: the command tree knows.
func origins() []origin {
	const (
		roadmap = "the litterbox roadmap"
		llima   = "llima-box"
		lima    = "lima-sandbox"
		libvirt = "the libvirt design"
		tool    = "as a tool for agents; by hand "
	)
	return []origin{
		{roadmap, "litterbox diff ENV", "litterbox diff NAME", "also what is not committed yet", ""},
		{roadmap, "litterbox list", "litterbox list", "", ""},
		{roadmap, "litterbox apply ENV [--args...]", "litterbox apply NAME", "git merge's flags in their order", ""},
		{roadmap, "litterbox merge ENV [--args...]", "litterbox merge NAME", "deletes only what has really landed", ""},
		{roadmap, "litterbox delete ENV", "litterbox delete NAME", "the last commit stays in the trash", ""},
		{roadmap, "litterbox pause [--all-envs] [--all-repos]", "litterbox pause --all-envs --all-repos", "", "`stop`, which ends processes and keeps files"},
		{roadmap, "litterbox shell ENV", "litterbox shell NAME", "", ""},
		{roadmap, "sandbox-create(name)", "litterbox mcp", tool + "`create`", ""},
		{roadmap, "sandbox-read(path)", "litterbox mcp", tool + "`read`", ""},
		{roadmap, "sandbox-write(path, content)", "litterbox mcp", tool + "`write`", ""},
		{roadmap, "sandbox-exec(command, message)", "litterbox mcp", tool + "`exec`", ""},
		{roadmap, "sandbox-service(action, service)", "litterbox mcp", "as a tool for agents, with logs as one more action", ""},
		{roadmap, "sandbox-milestone(message)", "litterbox mcp", tool + "`milestone`", ""},

		{llima, "shell [PATH]", "litterbox env shell PATH", "a live environment: the real directory, only by a human", ""},
		{llima, "shell [PATH] -- COMMAND...", "litterbox env shell PATH -- CMD", "", ""},
		{llima, "list", "litterbox env list", "", ""},
		{llima, "delete PATH", "litterbox env delete PATH", "", ""},
		{llima, "delete-all", "litterbox env delete --all", "", ""},

		{lima, "init [--template T] [--force]", "litterbox init --template T --force", "`--from` reads a `.lima-sandbox.toml`", ""},
		{lima, "build [--no-cache] [--skip-sync]", "litterbox build --no-cache --skip-sync", "makes the golden", ""},
		{lima, "update [--sync-only]", "litterbox golden update", "with `--sync-only`; `litterbox update NAME` brings a sandbox to its base", ""},
		{lima, "spawn COUNT [--start] [--parallel]", "litterbox spawn COUNT --parallel N", "each runs at once; a fork (`--from`) with its first command", ""},
		{lima, "sync [workers] [paths] [-n] [--delete]", "litterbox sync NAME --dry-run --delete", "", "`cp` inwards"},
		{lima, "sync-back WORKER [paths] [-n] [--delete]", "litterbox sync-back NAME --dry-run --delete", "", "`cp` outwards, or `apply`"},
		{lima, "watch-back WORKER [paths] [-i] [-q]", "litterbox watch-back NAME --interval", "", ""},
		{lima, "run PROMPT [--workers] [--yolo] [--output] [--parallel]", "litterbox agent run PROMPT", "`litterbox run` runs a command, not a prompt", ""},
		{lima, "shell [WORKER] [--command]", "litterbox shell NAME -- CMD", "the name is not optional; the command stands behind `--`", ""},
		{lima, "list [--json] [--all]", "litterbox list --json --all", "", ""},
		{lima, "status [workers] [--json]", "litterbox status NAME --json", "one name, or all of the repository; what a worker began with is in it", ""},
		{lima, "stop [workers]", "litterbox stop NAME", "`'worker-*'` for all workers, `--all` for every sandbox; without either nothing is stopped", ""},
		{lima, "start [workers]", "litterbox start NAME", "likewise; other commands start it by themselves", ""},
		{lima, "teardown [--all] [--force]", "litterbox teardown --all --force", "`--all` takes every sandbox of the repository, not only workers, and its goldens", ""},
		{lima, "-p, --project", "litterbox -C DIR", "the project is the repository that DIR is in", ""},
		{lima, "-c, --config", "", "the configuration that counts is the one in the checkout", ""},
		{lima, "-v, --verbose and -q, --quiet", "", "progress shows on a terminal only, notes go to stderr", ""},

		{libvirt, "acquire(spec)", "litterbox create NAME", "", ""},
		{libvirt, "attach(lease)", "litterbox exec NAME", "every command attaches to what runs", ""},
		{libvirt, "pause(lease, reason)", "litterbox pause NAME", "", ""},
		{libvirt, "resume(lease)", "litterbox resume NAME", "`start` is for a stopped one", ""},
		{libvirt, "snapshot(lease, label)", "litterbox snapshot NAME", "every write and command is a commit already", ""},
		{libvirt, "revert to a snapshot", "litterbox restore NAME", "", ""},
		{libvirt, "destroy(lease, force)", "litterbox delete NAME --force", "", ""},
		{libvirt, "recover(lease)", "litterbox start NAME", "every command recovers what it finds dead", ""},
		{libvirt, "collect_metrics(lease)", "litterbox metrics NAME", "", ""},
		{libvirt, "a new allow-list revision", "litterbox allow NAME RULE", "`deny` makes one too; in force at once, without a pause", ""},
		{libvirt, "observables of a cycle", "litterbox network NAME", "what was tried, with verdict and rule", ""},
		{libvirt, "entries proposed from observables", "litterbox network NAME --suggest", "", ""},
	}
}
