package large_test

import (
	"strings"
	"testing"
)

// A history of a gigabyte that no compression makes smaller.
func TestLongHistory(t *testing.T) {
	h := large(t)
	h.shell(h.Repo, `
		{
			for i in $(seq 1000); do
				printf 'commit refs/heads/main\ncommitter Test User <test@example.com> %d +0000\ndata 7\ncommit\n\n' $((1700000000 + i))
				[ $i != 1 ] || echo "from $(git rev-parse main)"
				printf 'M 100644 inline blob%d\ndata 1048576\n' $((i % 50))
				head -c 1048576 /dev/urandom
				echo
			done
		} | git fast-import --quiet
		git reset -q --hard main`)
	size := h.shell(h.Repo, "du -sm .git | cut -f 1")
	t.Logf("the repository has %s MB", size)
	h.duplicate()
	h.compared("create and first command, of 50 MB of files",
		timed(func() { h.litterbox("run", "box", "--", "true") }),
		timed(func() { h.run(h.Dir, "git", "clone", "-q", "--no-local", h.copy, "other") }))
	if have := strings.TrimSpace(h.litterbox("exec", "box", "--no-commit", "--", "git", "rev-list", "--count", "HEAD").Stdout); have != "1001" {
		t.Errorf("inside, git counts %s commits of 1001", have)
	}
	h.litterbox("exec", "box", "--no-commit", "--", "git", "fsck", "--no-dangling")
	h.compared("a second sandbox, 500 commits earlier",
		timed(func() { h.litterbox("create", "earlier", "--base", "main~500") }),
		timed(func() {
			h.shell(h.copy, "git worktree add -q ../earlier HEAD~500; git worktree remove --force ../earlier")
		}))
	if have := strings.TrimSpace(h.litterbox("exec", "earlier", "--no-commit", "--", "git", "rev-list", "--count", "HEAD").Stdout); have != "501" {
		t.Errorf("inside, git counts %s commits of 501", have)
	}
	h.litterbox("delete", "earlier")
	h.both("change two files", "echo changed >>blob1; rm blob2")

	// The agent's own commits, on the tip and on a commit far back.
	h.litterbox("exec", "box", "--", "sh", "-ec", `
		git config user.name Agent; git config user.email agent@example.com
		head -c 20000000 /dev/urandom >random; git add -A; git commit -q -m 'the agent: random'
		git show HEAD~900:blob7 >old; git add old; git commit -q -m 'the agent: old'`)
	if have := h.Git("log", "-2", "--skip=1", "--format=%s", "box"); have != "the agent: old\nthe agent: random" {
		t.Errorf("the branch has the commits %q", have)
	}
	// The agent's first commit was one above main when it asked.
	if want, have := h.Git("rev-parse", "main~899:blob7"), h.Git("rev-parse", "box:old"); want != have {
		t.Errorf("the old file is %s, and %s in the branch", want, have)
	}
	h.clone()
}
