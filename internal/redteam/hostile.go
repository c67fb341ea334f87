package redteam

// Hostile is a repository that runs code. The script makes it, in a work tree,
// given the directory that its code should write to; the trigger is the git
// command that falls for it.
type Hostile struct {
	Name    string
	Script  func(canary string) string
	Trigger string
}

// HostileRepositories lists the ways that we know.
func HostileRepositories() []Hostile {
	const all = "git status; touch new; git add -A; git commit -qm x; git diff HEAD~1; git log -p --show-signature; git checkout -q -b other; git merge -q main"
	setting := func(key string) func(string) string {
		return func(canary string) string {
			return "git config " + key + " 'touch " + canary + "/" + key + "; false'"
		}
	}
	attributed := func(attribute, key string) func(string) string {
		return func(canary string) string {
			return "echo '* " + attribute + "' | tee .gitattributes > .git/info/attributes; git config " + key + " 'touch " + canary + "/filter; cat'; echo more >> README"
		}
	}
	return []Hostile{
		{"core.fsmonitor", setting("core.fsmonitor"), all},
		{"core.fsmonitor in an included file", func(canary string) string {
			return "printf '[core]\\n\\tfsmonitor = touch " + canary + "/included\\n' > .evil; git config include.path ../.evil"
		}, all},
		{"core.fsmonitor in a worktree's file", func(canary string) string {
			return "git config extensions.worktreeConfig true; printf '[core]\\n\\tfsmonitor = touch " + canary + "/worktree\\n' > .git/config.worktree"
		}, all},
		{"hooks", func(canary string) string { return hooks(".git/hooks", canary) }, all},
		{"core.hooksPath", func(canary string) string {
			return hooks("hooks", canary) + "; git config core.hooksPath hooks"
		}, all},
		{"filter clean", attributed("filter=x", "filter.x.clean"), all},
		{"filter smudge", attributed("filter=x", "filter.x.smudge"), "git add -A; rm README; git checkout README"},
		{"filter process", attributed("filter=x", "filter.x.process"), all},
		{"diff.external", func(canary string) string {
			return "git config diff.external 'touch " + canary + "/external'; echo more >> README"
		}, "git diff"},
		{"diff driver", attributed("diff=x", "diff.x.command"), "git add -A; git commit -qm x; git diff --ext-diff HEAD~1"},
		{"diff textconv", attributed("diff=x", "diff.x.textconv"), "git add -A; git commit -qm x; git diff HEAD~1"},
		{"merge driver", attributed("merge=x", "merge.x.driver"),
			"git add -A; git commit -qm a; git checkout -qb other HEAD~1; echo less >> README; git commit -qam b; git merge main"},
		{"gpg.program", func(canary string) string {
			return "git config commit.gpgsign true; git config gpg.program ./evil; printf '#!/bin/sh\\ntouch " + canary + "/gpg\\n' > evil; chmod +x evil"
		}, all},
		{"core.pager", setting("core.pager"), "GIT_PAGER_IN_USE=1 git -c color.pager=false --paginate log; script -qc 'git log' /dev/null"},
		{"core.editor", setting("core.editor"), "touch new; git add new; git commit"},
		{"commondir", func(canary string) string {
			return "mkdir evil; cp -r .git/. evil; git -C evil config core.fsmonitor 'touch " + canary + "/commondir'; git config --file evil/config core.fsmonitor 'touch " +
				canary + "/commondir'; echo ../evil > .git/commondir"
		}, "git status"},
		{"nested bare repository", func(canary string) string {
			return "git init -q --bare sub; git config --file sub/config core.bare false; git config --file sub/config core.worktree ..; " +
				"git config --file sub/config core.fsmonitor 'touch " + canary + "/bare'; echo x > sub/file"
		}, "cd sub && git status"},
		{"nested repository", func(canary string) string {
			return "git init -q nested; git -C nested config core.fsmonitor 'touch " + canary + "/nested'; echo x > nested/file; echo 'gitdir: ../nested/.git' > src/.git"
		}, "git -C nested status; git add -A"},
		{"submodule", func(canary string) string {
			return "git init -q sub; git -C sub commit -q --allow-empty -m x; git -C sub config core.fsmonitor 'touch " + canary + "/submodule'; " +
				"git -c protocol.file.allow=always submodule --quiet add ./sub sub; git config submodule.sub.update '!touch " + canary + "/update'"
		}, "git status; git commit -qam x; git submodule update"},
		{"alias and ssh command", func(canary string) string {
			return "git config core.sshCommand 'touch " + canary + "/ssh'; git config remote.origin.url ssh://localhost/x; git config alias.list '!touch " + canary + "/alias'"
		}, "git fetch; git list"},
	}
}

// hooks makes every hook that a local command runs.
func hooks(dir, canary string) string {
	return "mkdir -p " + dir + "; for h in pre-commit prepare-commit-msg commit-msg post-commit post-checkout pre-merge-commit post-merge " +
		"post-rewrite post-index-change reference-transaction pre-auto-gc update pre-receive post-receive post-update; do " +
		"printf '#!/bin/sh\\ntouch " + canary + "/'$h'\\n' > " + dir + "/$h; chmod +x " + dir + "/$h; done"
}
