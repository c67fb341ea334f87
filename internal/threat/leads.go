package threat

// Rows about what can lead the host astray: links, repositories, objects, listings.

func wayOutRows() []Attack {
	const opener, names = "internal/hostile/open_linux.go", "internal/git/names.go"
	return rows(WayOut,
		Attack{Name: "lead the host through links", Escape: "the host reads or writes where a link points, with the human's rights (GHSA-vp62-88p7-qqf5)", Defence: list("internal/engine/files.go", opener), Tried: list(Redteam, Attacks), Places: []Place{Copy, Degraded, Machine}},
		Attack{Name: "escape from a copy to the host", Escape: "a link that an earlier copy brought is followed by the next one", Defence: list("internal/engine/files.go"), Tried: list(Attacks), Places: everywhere},
		Attack{Name: "name paths with dots", Escape: "read and write of litterbox itself reach out of the sandbox (container-use#337)", Defence: list("internal/engine/files.go"), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "hold up the host with a FIFO", Escape: "a program that opens it on the host waits for ever", Defence: list("internal/workspace/local/changes_linux.go"), Tried: list(Redteam)},
		Attack{Name: "put a pipe in the place of a directory", Escape: "a command of the host waits for a writer for ever, and no signal ends it", Defence: list(opener, "internal/hostile/walk_linux.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded, Machine}},
		Attack{Name: "lock the host out of the sandbox's own files", Escape: "a sandbox that can neither be stopped nor deleted", Defence: list("internal/hostile/remove_linux.go", "internal/engine/list.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded}},
		Attack{Name: "change home and workspace while the host works", Escape: "what was looked at is not what is opened: a command reads the human's files, or waits for ever", Defence: list(opener, "internal/hostile/walk_linux.go", "internal/branch/walk.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded}},
		Attack{Name: "commit files in a .git of another spelling", Escape: "a checkout writes the hooks of the human's repository", Defence: list(names), Tried: list(Redteam)},
		Attack{Name: "have work run before it is merged", Escape: "test runners, linters and formatters that walk the checkout run the configuration that an agent committed, unseen", Defence: list("internal/landing/worktree.go", "internal/landing/pointer.go"), Tried: list("test/script: TestScripts")},
		Attack{Name: "forge records of a snapshot or a layer", Escape: "an archive brings a device, a set-id bit, an attribute, a whiteout or a name out of its layer", Defence: list("internal/frozen/archive_linux.go"), Tried: list("internal/frozen: TestUnpackRefuses")},
	)
}

func gitRows() []Attack {
	return rows(Git,
		Attack{Name: "git", Escape: "the host's git runs what the agent's repository says, with the human's rights", Defence: list("internal/git/git.go", "internal/branch/walk.go"), Tried: list(Redteam, Attacks), Places: []Place{Copy, Degraded}},
		Attack{Name: "git: names that are options", Escape: "a file name taken for an option or a pattern (container-use#354)", Defence: list("internal/git/git.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded}},
		Attack{Name: "bring a hook that its own merge runs", Escape: "a hooks path in the tree, or a stub of a hook manager that sources a file of it, runs what the merge has just written", Defence: list("internal/landing/hooks.go"), Tried: list("internal/landing: TestHooksAtRisk", "internal/landing: TestHooksAtRiskByWhatTheyRead")},
		Attack{Name: "have the merge land something that was not judged", Escape: "a rename, a link that is turned or a name that is on no list puts code where the human's tools run it", Defence: list("internal/landing/risk.go", "internal/landing/risklinks.go", "internal/landing/risknames.go"), Tried: list("internal/landing: TestRisky", "internal/landing: TestLinksGiveNames", "internal/landing: TestRealTools")},
		Attack{Name: "git: .git replaced", Escape: "a link or a file in the place of .git sends the host's git to a repository of the attacker's choice", Defence: list("internal/workspace/local/changes_linux.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded, Machine}},
	)
}

func objectRows() []Attack {
	return rows(Objects,
		Attack{Name: "git: trees with names of .git and ..", Escape: "git 2.39's fast-import accepts `.git/hooks/x` and `../x`; a checkout then writes them", Defence: list("internal/git/names.go", "internal/branch/packcheck.go"), Tried: list(Redteam, Attacks), Places: []Place{Copy, Degraded}},
		Attack{Name: "trees that stand for 10^10 paths", Escape: "git on the host expands them until the kernel ends the human's programs", Defence: list("internal/branch/expansion.go"), Tried: list(Redteam, Attacks)},
		Attack{Name: "a delta that expands", Escape: "a pack of a few kilobytes takes gigabytes of memory, or brings a file beyond every limit", Defence: list("internal/branch/packcheck.go"), Tried: list(Redteam, "internal/branch: TestPackIsJudgedByWhatItDeclares")},
		Attack{Name: "a message that is a terminal's and litterbox's own", Escape: "git log on the host obeys escapes, and litterbox believes forged trailers", Defence: list("internal/branch/foreignmessage.go"), Tried: list(Redteam, Attacks)},
	)
}

func liveRows() []Attack {
	const checkout, protect = "internal/live/checkout.go", "internal/live/protect.go"
	return rows(Live,
		Attack{Name: "live: a checkout's git", Escape: "the human's git runs what an environment wrote into the checkout's .git", Defence: list("internal/driver/namespace/stage/live_linux.go", checkout), Tried: list(Attacks)},
		Attack{Name: "live: an index with a repository in it", Escape: "git status of the human enters a repository that an environment made, and obeys it", Defence: list("internal/live/index.go"), Tried: list(Attacks)},
		Attack{Name: "live: links out of the project", Escape: "litterbox reads or writes files of the human through links of an environment", Defence: list("internal/live/live.go"), Tried: list(Attacks)},
		Attack{Name: "live: a submodule's repository", Escape: "git status of the human enters a submodule whose configuration an environment wrote", Defence: list(checkout), Tried: list(Attacks)},
		Attack{Name: "live: files that run by themselves", Escape: "an environment changes what the human's editor, package manager or make runs", Defence: list(protect), Tried: list(Attacks)},
	)
}

func terminalRows() []Attack {
	const clean = "internal/frontend/cli/clean.go"
	return rows(Terminal,
		Attack{Name: "type into the human's shell", Escape: "what a program puts into the terminal's input, the shell behind it runs when the program has ended (TIOCSTI)", Defence: list("internal/driver/seccomp/rules.go", "internal/guest/stdio_linux.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded}},
		Attack{Name: "steer the terminal from a listing", Escape: "escape sequences in names and messages move the cursor over the truth, retitle windows, or type answers", Defence: list(clean), Tried: list(Redteam, Attacks), Places: []Place{Copy, Degraded, Machine}},
		Attack{Name: "win a question about the network", Escape: "the domain that decides is off the screen, a key typed before the question answers it, or hundreds of questions wear the human out", Defence: list("internal/frontend/cli/ask.go", "internal/frontend/cli/asklayout.go"), Tried: list("internal/frontend/cli: TestAskIgnoresWhoTypesOn", "internal/frontend/cli: TestAskOnAnyScreen", "internal/frontend/cli: TestAskAboutMany")},
		Attack{Name: "git: escape sequences in listings", Escape: "a message or a name that retitles, clears or types into the human's terminal", Defence: list(clean, "internal/branch/foreignmessage.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded, Machine}},
	)
}
