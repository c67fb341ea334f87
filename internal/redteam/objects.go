package redteam

import (
	"context"
	"fmt"
	"strings"
)

func objectAttacks() []Attack {
	return []Attack{
		{
			Class: Objects, Name: "a tree that stands for two million paths", Escape: "git on the host expands it until memory is gone",
			Defence: "internal/branch/expansion.go", fresh: true, try: func(ctx context.Context, w *world, p place) (outcome, error) {
				return committed(ctx, w, p, treeBomb, "the tree", `git log --format=%s "$at"`, "tree bomb")
			},
		},
		{
			Class: Objects, Name: "a tree with entries that leave it", Escape: "a checkout writes .git/hooks, or beside the work tree",
			Defence: "internal/git/names.go", fresh: true, try: func(ctx context.Context, w *world, p place) (outcome, error) {
				return committed(ctx, w, p, crafted, "an entry", `git ls-tree -rt --name-only "$at"`, ".git", "..")
			},
		},
		{
			Class: Objects, Name: "forge litterbox's own trailers", Escape: "the audit of a branch believes what the agent wrote",
			Defence: "internal/branch/foreignmessage.go", fresh: true, try: func(ctx context.Context, w *world, p place) (outcome, error) {
				return committed(ctx, w, p, forged, "the trailer", `git log --format='%(trailers:key=Litterbox-Iteration,valueonly)' "$at"`, "999")
			},
		},
	}
}

// committed makes a commit by plumbing and looks whether it is in the human's
// repository, on the sandbox's branch. The look is bounded: it expands no tree.
func committed(ctx context.Context, w *world, p place, script, what, look string, signs ...string) (outcome, error) {
	if _, err := p.work(ctx, "set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.invalid GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.invalid\n"+
		script+"\necho made"); err != nil {
		return outcome{}, err
	}
	// That git itself made it is the same inside and outside.
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

// treeBomb is twice what litterbox takes, and what git can still list.
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
