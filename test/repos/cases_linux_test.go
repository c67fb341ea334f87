package repos_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

const pageHead = `# Special kinds of repositories

<!-- Generated from the table of test/repos, which makes the same change in each
inside of a sandbox and by plain git, and compares the trees. -->

How litterbox handles special repositories. Each line is a test: the same change made in a sandbox and by plain git gives the same tree.

| repository | what happens |
|---|---|
`

const pageTail = `
## Submodules, step by step

- **In.** The files of a submodule, and of those nested in it, come from the git directory that the host has of it (` + "`.git/modules/<name>`" + `), at the commit that the base names. Nothing is fetched. Where the host has none, or not that commit, the directory is empty inside, and ` + "`create`" + ` says so with the command that brings it: ` + "`git submodule update --init --recursive -- PATH`" + `, then create the sandbox again. A submodule whose git directory lies in its own work tree is taken after ` + "`git submodule absorbgitdirs`" + `.
- **Inside.** Each has a git directory of its own with what its commit reaches. Its configuration is litterbox's: nothing of the host's configuration or hooks for it enters, and credentials are taken out of its URL. Names with ` + "`..`" + ` and the like, and names that lie inside of another one's, are refused with a note.
- **Out.** What the agent commits in a submodule is checked (git's own fsck in a quarantine, then every path) and taken into the host's git directory of that submodule, under ` + "`refs/litterbox/received/`" + `; the next commit of the sandbox names it. After a merge, ` + "`git submodule update`" + ` checks it out without fetching. Push the submodule before the branch that names it. Those refs stay until you delete them (` + "`git -C PATH for-each-ref refs/litterbox`" + `).
- **What stays inside**: what is not committed in the submodule (a note says so each time), and the commits of a submodule that the agent added itself, which has no git directory on the host (a note says so whenever the branch names another one). ` + "`merge`" + ` keeps a sandbox that has such.

## What differs from plain git

- A file that its owner may not read (mode 000) stops ` + "`git add`" + ` altogether; litterbox commits the rest, keeps the file as it was last committed and says so. Run by root both read it.
- Sparse files: what is a hole costs a sandbox nothing, so of what its files on the branch have in holes only 64 MiB may be new. A file that git held already at that size, in its place or under another name, is committed however sparse it became. What stays out stands in a note; ` + "`cp --sparse=never FILE COPY`" + ` makes a file that is committed.
- A repository inside the repository, which is not a submodule, stays out with a note; git commits its commit's name alone, and nothing where it has no commit. Without its ` + "`.git`" + ` its files are committed.
- A step moves neither ` + "`HEAD`" + ` nor the index inside: ` + "`git status`" + ` there shows what has not been committed inside, whatever stands on the branch ([ADR 61](../adr/0061-steps-leave-head-inside.md)).
- Of the agent's own commits those come out that ` + "`HEAD`" + ` of the git inside reaches. Its other branches and its stash stay inside.
- Whatever stays inside and is not ignored is not lost by a merge: ` + "`merge`" + ` keeps the sandbox and says why, ` + "`delete`" + ` needs ` + "`--force`" + `.
- Filters other than Git LFS (` + "`filter.<name>.clean`" + `) are never run: content goes in as it is.
- ` + "`git gc`" + `, ` + "`git repack`" + ` and ` + "`git pack-refs`" + ` may run on the host at any time, while sandboxes run and commit: a commit whose objects are taken away before the branch names them is made again.
- Set-user-id and set-group-id bits are refused to files inside. Directories may have the latter, as in a repository that is shared (` + "`git init --shared`" + `) inside.
`

// table is in the order of the page.
var table = []repository{
	{
		name: "sparse checkout", says: "the sandbox holds all files; the checkout on the host stays sparse",
		make:   `mkdir other; echo other >other/file; git add .; git commit -qm more; git sparse-checkout set --cone src`,
		change: `echo more >>src/main.txt; echo new >src/new; test -f other/file || test -f .git/info/sparse-checkout`,
	},
	{
		name: "partial clone", says: "with `--filter=blob:none`: what HEAD needs is there, and nothing is fetched; older content that the clone left out is missing inside too, where git knows it as promised",
		make: `echo old >old; git add .; git commit -qm old; git rm -q old; git commit -qm gone
			git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true
			git clone -q --filter=blob:none "file://$PWD" "$ODD"`,
		odd: true, change: `echo more >>README; git log --oneline | wc -l >count; git fsck --connectivity-only; git commit -qam inside; git gc -q; echo end >>README`,
		outside: `echo more >>README; git log --oneline | wc -l >count; echo end >>README; git add -A`,
		also: func(h *program.Host, _ program.Result) {
			if got := h.Inside("box", "git", "show", "HEAD~2:old"); got.Code == 0 || !strings.Contains(got.Stderr, "promisor") {
				h.Errorf("older content: exited %d, %s", got.Code, got.Stderr)
			}
			run(h, `git rev-list --objects --missing=print HEAD | grep -q '^?'
				git log --format=%s box | grep -qx inside`)
		},
	},
	{
		name: "partial clone without directories", says: "with `--filter=tree:0`: `create` names the command that brings the directories of older commits",
		needs: `git fetch -h 2>&1 | grep -q refetch || { echo "this git has no fetch --refetch: $(git version)"; exit 1; }`,
		make: `mkdir older; echo old >older/file; git add .; git commit -qm older; git rm -qr older; git commit -qm newer
			git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true
			git clone -q --filter=tree:0 "file://$PWD" "$ODD"
			cd "$ODD"
			! "$LITTERBOX" create early 2>"$DIR/said"
			sed -n 's/^ *try: //p' "$DIR/said" | sed 's/   (.*//' >"$DIR/try"; grep -q 'git fetch' "$DIR/try"
			git config gc.autoDetach false # git fetch --refetch joins packs afterwards
			sh -e "$DIR/try"`,
		odd: true, change: `echo more >>README; git commit -qam inside; git log --oneline -- older | wc -l >count`,
		outside: `echo more >>README; git log --oneline -- older | wc -l >count; git add -A`,
		also:    func(h *program.Host, _ program.Result) { run(h, `git log --format=%s box | grep -qx inside`) },
	},
	{
		name: "partial clone, sparse", says: "with files of HEAD that the clone does not have: `create` names the command that brings them",
		make: `mkdir other; echo other >other/file; git add .; git commit -qm more
			git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true
			git clone -q --filter=blob:none --sparse "file://$PWD" "$ODD"
			cd "$ODD"; git rev-list --objects --missing=print HEAD | grep -q '^?'
			! "$LITTERBOX" create early 2>"$DIR/said"
			sed -n 's/^ *try: //p' "$DIR/said" | sed 's/   (.*//' >"$DIR/try"; grep -q 'git fetch' "$DIR/try"
			git config gc.autoDetach false # git fetch --refetch joins packs afterwards
			sh -e "$DIR/try"`,
		odd: true, change: `echo more >>other/file`,
		outside: `git sparse-checkout disable; echo more >>other/file; git add -A`,
	},
	{
		name: "shallow clone", says: "as shallow inside as on the host",
		make: `git commit -q --allow-empty -m two; git clone -q --depth 1 "file://$PWD" "$ODD"`,
		odd:  true, change: `git log --oneline | wc -l >count; echo more >>README; git fsck`,
	},
	{
		name: "borrowed objects", says: "a clone with `--shared` or `--reference` works; nothing of the other repository shows inside. A store of another user is refused, unless `safe.directory` of your git configuration names it",
		make: `git clone -q --shared . "$ODD"`,
		odd:  true, change: `echo more >>README; test ! -e .git/objects/info/alternates; git fsck`,
		outside: "echo more >>README; git add -A",
	},
	{
		name: "linked worktree", says: "`git worktree add`: works in each, on its HEAD",
		make: `git worktree add -q -b side "$ODD"; cd "$ODD"; echo side >side; git add .; git commit -qm side`,
		odd:  true, change: `echo more >>side; git log --oneline`,
	},
	{
		name: "detached HEAD", says: "the sandbox's branch starts there",
		make: `git commit -q --allow-empty -m two; git checkout -q --detach HEAD~1`, change: `echo more >>README`,
	},
	{
		name: "SHA-256", says: "object format sha256, inside as outside",
		make: `git init -q --object-format=sha256 "$ODD"; cd "$ODD"; echo one >file; mkdir dir; echo two >dir/file; git add .; git commit -qm one`,
		odd:  true, change: `echo more >>file; rm -r dir; git commit -qam inside; echo again >>file; test "$(git rev-parse --show-object-format)" = sha256`,
		outside: `echo more >>file; echo again >>file; rm -r dir; git add -A`,
	},
	{
		name: "reftable", says: "refs as reftable, with git 2.45 or newer on the host; inside refs are files",
		needs: `rm -rf "$DIR/try"; git init -q --ref-format=reftable "$DIR/try" || { echo "this git has no reftable: $(git version)"; exit 1; }`,
		make:  `git init -q --ref-format=reftable "$ODD"; cd "$ODD"; echo one >file; git add .; git commit -qm one`,
		odd:   true, change: `echo more >>file; git commit -qam inside; echo again >>file`,
		outside: `echo more >>file; echo again >>file; git add -A`,
	},
	{
		name: "line ends", says: "`text`, `eol`, `core.autocrlf` and `core.eol` are applied as git applies them, as data",
		make: `printf '* text=auto\n*.bat text eol=crlf\n*.sh eol=lf\n*.raw -text\n' >.gitattributes
			printf 'a\r\nb\r\n' >a.bat; printf 'a\r\n' >a.raw; printf 'a\n' >a.txt; git add .; git commit -qm eol; git config core.autocrlf input; git checkout -q .`,
		change: `printf 'a\r\nc\r\n' >a.bat; printf 'b\r\n' >b.txt; printf 'x\r\ny\n' >mixed.txt; printf 'z\r\n' >z.raw; printf 's\r\n' >s.sh; printf '\0\r\n' >binary; touch a.txt`,
	},
	{
		name: "working-tree-encoding", says: "converted as git converts it, as data",
		make: `printf '*.u16 text working-tree-encoding=UTF-16LE eol=crlf\n*.b16 text working-tree-encoding=UTF-16\n*.l1 text working-tree-encoding=ISO-8859-1\n' >.gitattributes
			printf 'h\0i\0\r\0\n\0' >a.u16; printf '\377\376h\0i\0\n\0' >a.b16; printf 'caf\351\n' >a.l1; git add .; git commit -qm encoded`,
		change: `printf 'y\0o\0\r\0\n\0' >>a.u16; printf 'n\303\0' >/dev/null; printf '\376\377\0y\0\n' >b.b16; printf '\374ber\n' >>a.l1`,
	},
	{
		name: "ident", says: "`$Id$` is shortened again on the way to the branch",
		make:   `printf '*.c ident\n' >.gitattributes; printf 'x $Id$ y\n' >a.c; git add .; git commit -qm ident; rm a.c; git checkout -q a.c`,
		change: `grep -q 'Id: ' a.c; echo more >>a.c; printf '$Id: 1234 $\n' >b.c; touch .gitattributes`,
	},
	{
		name: "Git LFS", says: "pointers in, pointers out: inside stand the pointers; what is written to a path with `filter=lfs` becomes a pointer on the branch and an object in the host's LFS store. No filter program is run",
		make: `cat >"$DIR/clean" <<'END'
#!/bin/sh
touch "$MARK"
cat >"$DIR/content"
[ -s "$DIR/content" ] || exit 0
! head -n 1 "$DIR/content" | grep -q '^version https://git-lfs' || exec cat "$DIR/content"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$(sha256sum <"$DIR/content" | cut -c1-64)" "$(wc -c <"$DIR/content")"
END
			chmod +x "$DIR/clean"
			git config filter.lfs.clean "$DIR/clean"; git config filter.lfs.smudge cat; git config filter.lfs.required true
			printf '*.bin filter=lfs diff=lfs merge=lfs -text\n' >.gitattributes; printf 'big content' >a.bin; git add .; git commit -qm lfs; rm a.bin; git checkout -q a.bin; rm "$MARK"`,
		change: `head -n 1 a.bin >/dev/null; printf 'new content' >b.bin; touch a.bin; mkdir sub; printf 'big content' >sub/c.bin; : >empty.bin`,
		also: func(h *program.Host, got program.Result) {
			if _, err := os.Stat(filepath.Join(h.Dir, "mark")); err == nil {
				h.Error("a filter ran on what the agent wrote")
			}
			run(h, `sum=$(printf 'new content' | sha256sum | cut -c1-64)
				test "$(cat .git/lfs/objects/$(echo $sum | cut -c1-2)/$(echo $sum | cut -c3-4)/$sum)" = 'new content'`)
			if got := h.Inside("box", "head", "-c", "20", "a.bin"); got.Stdout != "version https://git-l" && got.Stdout != "version https://git-" {
				h.Errorf("inside stands %q", got.Stdout)
			}
		},
	},
	{
		name: "names that differ in case", says: "two files, as on any Linux file system",
		make: `echo a >file; echo b >FILE; mkdir Dir dir; echo c >Dir/x; echo d >dir/x; git add .; git commit -qm case`, change: `echo more >>FILE; echo more >>dir/x; rm Dir/x; echo e >File`,
	},
	{
		name: "names that differ in case, with core.ignorecase", says: "the same: inside, case counts",
		make:    `echo a >file; echo b >FILE; mkdir Dir dir; echo c >Dir/x; echo d >dir/x; git add .; git commit -qm case; git config core.ignorecase true`,
		change:  `echo more >>FILE; echo more >>dir/x; rm Dir/x; echo e >File; git mv README Readme`,
		outside: `git config core.ignorecase false; echo more >>FILE; echo more >>dir/x; rm Dir/x; echo e >File; git mv README Readme; git add -A`,
	},
	{
		name: "names of any bytes", says: "line breaks, quotes, a byte that is not UTF-8, a leading dash, a trailing space",
		make:   `printf x >"$(printf 'a\nb')"; printf x >"$(printf 'c\377d')"; git add .; git commit -qm names`,
		change: `printf y >"$(printf 'a\nb')"; printf y >"$(printf '\300\200e')"; printf z >'qu"o'"'"'te\\'; printf z >./-rf; printf z >'end '; mkdir -p ' /\t'; printf z >' /\t/x'`,
	},
	{
		name: "deep paths", says: "as long as the whole path stays below 4,096 bytes",
		make:   `d=; for i in $(seq 30); do d=$d$i-abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz/; done; mkdir -p "$d"; echo deep >"$d/file"; git add .; git commit -qm deep`,
		change: `d=; for i in $(seq 30); do d=$d$i-abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz/; done; echo more >>"$d/file"; mkdir -p "$d/31/32/33"; echo deeper >"$d/31/32/33/file"`,
	},
	{
		name: "tracked but ignored files", says: "stay tracked: a change to them is committed, a new ignored file is not",
		make:   `printf '*.log\nbuild/\n' >.gitignore; mkdir build; echo one >build/kept; echo one >kept.log; git add -f .; git commit -qm kept`,
		change: `echo two >>build/kept; echo two >>kept.log; echo no >build/new; echo no >new.log`,
	},
	{
		name: "a directory that becomes a file", says: "and a file that becomes a directory, and both back again",
		make:   `mkdir -p d/e; echo x >d/e/f; echo y >d/g; echo z >file; mkdir back; echo w >back/w; git add .; git commit -qm d`,
		change: `rm -r d; echo file >d; rm file; mkdir file; echo in >file/in; rm -r back; echo short >back; rm back; mkdir back; echo w >back/w`,
	},
	{
		name: "files of mode 000", says: "content that its owner may not read stays as last committed, with a note; the rest is committed (git refuses to commit at all). Root reads it, in both",
		make: `echo secret >locked; echo other >other; git add .; git commit -qm locked`, change: `echo more >>locked; echo more >>other; chmod 000 locked`,
		outside: `echo more >>other; if [ "$(id -u)" = 0 ]; then echo more >>locked; chmod 000 locked; fi; git add -A`,
		also: func(h *program.Host, got program.Result) {
			if os.Geteuid() != 0 && !strings.Contains(got.Stderr, `"locked" stays as last committed`) {
				h.Errorf("no note: %q", got.Stderr)
			}
		},
	},
	{
		name: "modes and links", says: "executable bits, symbolic links (also to nowhere and out of the repository) and empty directories, as git has them",
		make:   `echo x >tool; chmod +x tool; ln -s tool link; ln -s /nowhere out; git add .; git commit -qm modes`,
		change: `chmod -x tool; chmod +x README; ln -sf ../.. link; rm out; echo plain >out; ln -s /etc/passwd new; mkdir empty; chmod 600 src/main.txt`,
	},
	{
		name: "hard links", says: "two names, two files to git, and not linked inside; links made inside are",
		make: `ln README hard; git add .; git commit -qm hard; rm hard; git checkout -q hard`, change: `echo more >>hard; ln README second; ln src/main.txt third; echo more >>third`,
	},
	{
		name: "extended attributes", says: "are no part of a commit; inside they can be set and read",
		make:    `echo x >x`,
		change:  `echo more >>README; python3 -c 'import os; os.setxattr("README", "user.note", b"1"); assert os.getxattr("README", "user.note") == b"1"; os.setxattr("src", "user.note", b"2")'; touch -d 2001-01-01 src/main.txt`,
		outside: `echo more >>README; git add README`,
		needs:   `command -v python3 || { echo "python3 is not installed"; exit 1; }`,
	},
	{
		name: "uncommitted changes", says: "`create --dirty` makes the tracked ones of the checkout, staged or not, the first commit; without it they stay out, with a note",
		make: `echo a >a; echo b >b; echo c >c; printf '*.ignored\n' >.gitignore; git add .; git commit -qm abc
			echo more >>a; rm b; echo staged >staged; git add staged; chmod +x c; echo no >x.ignored; mkdir new; echo no >new/untracked`,
		create: []string{"--dirty"}, change: `test ! -e b; test -x c; test ! -e x.ignored; test ! -e new; echo last >>a`,
		outside: `echo last >>a; git add -u`,
	},
	{
		name: "ignored files that are wanted", says: "`copy = [\"config/local.test\"]` (after `litterbox trust`) brings them in; no commit ever holds them",
		make: `printf 'config/local.*\n' >.gitignore; mkdir config; echo secret >config/local.test; echo other >config/local.other; printf 'copy = ["config/local.test"]\n' >.litterbox.toml
			git add .; git commit -qm copy; "$LITTERBOX" trust`,
		change: `if [ -n "$LITTERBOX" ] && [ "$LITTERBOX" = box ]; then grep -q secret config/local.test; test ! -e config/local.other; fi; echo more >>config/local.test; echo more >>README`,
	},
	{
		name: "submodules", says: "their content comes from the host's `.git/modules`, what is committed in them goes back there; see below",
		make: `git init -q "$DIR/lib"; cd "$DIR/lib"; echo lib >file; git add .; git commit -qm lib; cd - >/dev/null
			git submodule --quiet add "$DIR/lib" vendor/lib; git commit -qm sub`,
		change: `cd vendor/lib; echo more >>file; GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000' git commit -qam more; cd ../..; echo more >>README`,
	},
	{
		name: "many refs", says: "hundreds of branches and tags cost a sandbox nothing; inside are the tags that its base reaches",
		make:   `for i in $(seq 300); do printf 'create refs/tags/t%s %s\ncreate refs/heads/b/%s %s\n' $i $(git rev-parse HEAD) $i $(git rev-parse HEAD); done | git update-ref --stdin; git pack-refs --all`,
		change: `git tag | wc -l >tags; echo more >>README`,
	},
	{
		name: "a shared repository", says: "`core.sharedRepository`: its group rights stay as they are; what litterbox writes into the object store follows it. The sandbox's own `.git` is not shared",
		make:   `git config core.sharedRepository group; chmod -R g+rwX .git; find .git -type d -exec chmod g+s {} +`,
		change: `echo more >>README; mkdir made; echo x >made/x; git add -A; git commit -qm inside`, outside: `echo more >>README; mkdir made; echo x >made/x; git add -A`,
		also: func(h *program.Host, got program.Result) {
			run(h, `test -z "$(find .git/objects -type d ! -perm -g+w -print -quit)"`)
		},
	},
}
