package redteam

import (
	"context"
	"fmt"
	"strings"
)

func objectAttacks() []Attack {
	return []Attack{
		{
			name:  "trees that stand for 10^10 paths: two million",
			fresh: true, try: func(ctx context.Context, w *world, p place) (outcome, error) {
				return committed(ctx, w, p, treeBomb, "the tree", `git log --format=%s "$at"`, "tree bomb")
			},
		},
		{name: "a delta that expands", fresh: true, try: expandingDelta},
		{
			name:  "git: trees with names of .git and ..",
			fresh: true, try: func(ctx context.Context, w *world, p place) (outcome, error) {
				return committed(ctx, w, p, crafted, "an entry", `git ls-tree -rt --name-only "$at"`, ".git", "..")
			},
		},
		{
			name:  "a message that is a terminal's and litterbox's own",
			fresh: true, try: func(ctx context.Context, w *world, p place) (outcome, error) {
				return committed(ctx, w, p, forged, "the trailer", `git log --format='%(trailers:key=Litterbox-Iteration,valueonly)' "$at"`, "999")
			},
		},
	}
}

// expandingDelta commits a file of 600 MiB that is a delta of a kilobyte. It is
// not expanded here: git reads the size of a delta from its head.
func expandingDelta(ctx context.Context, w *world, p place) (outcome, error) {
	const mib, size = "600", "629145600"
	answers, err := p.probe(ctx, "delta", ".git/objects/pack", mib)
	if err != nil {
		return outcome{}, err
	}
	// The base goes with it: git sends a delta as it is where it sends both.
	script := `git reset -q --soft "$(git commit-tree -m delta -p HEAD "$(printf '100644 blob %s\tbase\n100644 blob %s\tbig\n' ` +
		answers["base"] + ` ` + answers["id"] + ` | git mktree)")"`
	return committed(ctx, w, p, script, "a file of "+mib+" MiB", "git cat-file -s "+answers["id"]+" 2>/dev/null || echo none", size)
}

// committed makes a commit by plumbing and checks whether it is in the human's
// repository, on the sandbox's branch. The check is bounded: it expands no tree.
func committed(ctx context.Context, w *world, p place, script, what, look string, signs ...string) (outcome, error) {
	if _, err := p.work(ctx, "set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.invalid GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.invalid\n"+
		script+"\necho made"); err != nil {
		return outcome{}, err
	}
	// Whether git itself made it is checked the same way inside and outside.
	made, err := p.shell(ctx, "at=HEAD; "+look)
	if err != nil {
		return outcome{}, err
	}
	if !anyLine(made.stdout, signs) {
		return outcome{}, fmt.Errorf("git did not make it: %s", made.said())
	}
	if !p.inside() {
		return outcome{escaped: true, seen: "git takes " + what}, nil
	}
	got := w.run(ctx, w.repo, "/bin/sh", "-c", `at="$1"; `+look, "sh", p.box)
	if got.code != 0 {
		return outcome{}, fmt.Errorf("cannot look at the branch: %s", got.said())
	}
	if anyLine(got.stdout, signs) {
		return outcome{escaped: true, seen: what + " is on the branch"}, nil
	}
	return outcome{seen: what + " is not on the branch"}, nil
}

func anyLine(text string, signs []string) bool {
	for line := range strings.Lines(text) {
		for _, sign := range signs {
			for part := range strings.SplitSeq(strings.TrimSpace(line), "/") {
				if part == sign {
					return true
				}
			}
		}
	}
	return false
}

// treeBomb is twice what litterbox takes, but what git can still list.
const treeBomb = `blob=$(git hash-object -w --stdin </dev/null)
level() { for n in $3; do printf '%s %s\t%s\n' "$1" "$2" "$n"; done | git mktree; }
ten='0 1 2 3 4 5 6 7 8 9'
tree=$(level '100644 blob' "$blob" "$ten")
for n in 1 2 3 4 5; do tree=$(level '040000 tree' "$tree" "$ten"); done
tree=$(level '040000 tree' "$tree" '0 1')
git reset -q --soft "$(git commit-tree -m 'tree bomb' -p HEAD "$tree")"`

// crafted writes tree objects byte for byte: git's own commands refuse such
// names. An object's id is 20 bytes here: the repository is one of SHA-1.
const crafted = `blob=$(echo x | git hash-object -w --stdin)
octal() { for i in 1 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31 33 35 37 39; do printf '\\%03o' "0x$(echo "$1" | cut -c $i-$((i+1)))"; done; }
raw() { printf '%s %s\000' "$1" "$2"; printf "$(octal "$3")"; }
id() { git hash-object -t tree -w --literally --stdin; }
hooks=$(raw 100755 post-merge $blob | id)
dotgit=$(raw 40000 hooks $hooks | id)
up=$(raw 100644 escaped $blob | id)
all=$({ raw 40000 .. $up; raw 40000 .git $dotgit; raw 100644 good $blob; } | id)
git update-ref HEAD "$(git commit-tree -p HEAD -m crafted $all)"`

const forged = `printf 'fix the parser\n\nLitterbox-Iteration: 999\n' | git commit -q --allow-empty --cleanup=verbatim -F -`
