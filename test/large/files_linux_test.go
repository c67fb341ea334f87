package large_test

import (
	"fmt"
	"strings"
	"testing"
)

// A hundred thousand files, and ten thousand more in one directory.
func TestManyFiles(t *testing.T) {
	h := large(t)
	h.shell(h.Repo, `
		for i in $(seq 1000); do mkdir -p d$((i % 10))/$i; (cd d$((i % 10))/$i && seq -f "$i %g" 100 | split -l 1 -a 2 - f); done
		mkdir flat && cd flat && seq 10000 | split -l 1 -a 3 - f`)
	h.shell(h.Repo, "git add -A && git commit -q -m many && git gc -q")
	if files := h.shell(h.Repo, "git ls-files | wc -l"); files != "110002" {
		t.Fatalf("the repository has %s files", files)
	}
	h.duplicate()
	h.compared("create and first command",
		timed(func() { h.litterbox("run", "box", "--", "true") }),
		timed(func() {
			h.shell(h.copy, "git worktree add -q ../other HEAD")
			h.shell(h.copy, "git worktree remove --force ../other")
		}))
	h.same("box")
	h.both("change, add, remove, rename some files", `
		for i in $(seq 10); do echo changed >>d$((i % 10))/$i/faa; echo new >flat/new$i; done
		rm flat/faab flat/faac; mv d1/1 d1/renamed; chmod +x d2/2/fab; rm d3/3/fac; ln -s faa d3/3/fac`)
	h.compared("git status inside",
		timed(func() {
			if got := h.litterbox("exec", "box", "--no-commit", "--", "git", "status", "--porcelain"); got.Stdout == "" {
				t.Error("git status inside shows no change of the agent")
			}
		}),
		timed(func() { h.shell(h.copy, "git status --porcelain") }))
	h.both("rename a directory of 10,000 files", "mv flat flatter")
	h.both("change every file", `find . -path ./.git -prune -o -type f -print0 | xargs -0 sed -i 's/^/changed /'`)
	h.both("remove 50,000 files", "rm -r d0 d2 d4 d6 d8")
	h.both("a directory of 10,000 new files", "mkdir fresh && cd fresh && seq 10000 | split -l 1 -a 3 - n")
	h.clone()
	h.merge()
}

// Paths as long as git takes, and longer ones.
func TestDeepPaths(t *testing.T) {
	h := large(t)
	h.duplicate()
	h.litterbox("create", "box")
	// deep goes down and runs a command there. 20 directories make a path of
	// 4,024 bytes: less than PATH_MAX from the top of the work tree, more than
	// it from the root.
	deep := func(letter string, levels int, then string) string {
		part := strings.Repeat(letter, 200)
		return fmt.Sprintf("(for i in $(seq %d); do mkdir -p %s; cd -P ./%s; done; %s)\n", levels, part, part, then)
	}
	h.both("a path of 4,000 bytes", deep("p", 20, "echo deep >file"))
	h.both("change it", deep("p", 20, "echo deeper >>file"))
	h.clone()

	// git itself gives up at the longer one; litterbox commits the rest, and
	// says what is missing.
	got := h.litterbox("exec", "box", "--", "/bin/sh", "-e", "-c", deep("q", 30, "echo deep >file")+"echo more >more")
	if !strings.Contains(got.Stderr, "4096") {
		t.Errorf("nothing is said of a path that is too long:\n%s", got.Stderr)
	}
	h.shell(h.copy, "echo more >more; git add more; git commit -q -m more")
	h.same("box")
	h.both("go on beside it", "echo again >>more")
	h.merge()
}
