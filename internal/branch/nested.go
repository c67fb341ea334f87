package branch

import (
	"io"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// whyNested says why a directory that is a work tree of git stays out.
func whyNested(d workspace.Dir) string {
	if isWorktree(d) {
		return "it is a worktree of git; what is committed there is on a branch that litterbox branches lists"
	}
	return "it is a separate git repository; it would come out without its .git"
}

// isWorktree reports whether a directory looks like one that git worktree has
// made. Its .git is a file that names a directory below worktrees of the git
// inside (gitrepository-layout(5)). It is the sandbox's word, and only chooses
// words.
func isWorktree(d workspace.Dir) bool {
	if entry, err := d.Entry(".git"); err != nil || entry.Kind != workspace.Regular {
		return false
	}
	file, err := d.File(".git")
	if err != nil {
		return false
	}
	defer file.Close()
	const longest = 8 << 10 // a path of 4096 bytes (PATH_MAX) and more
	content, err := io.ReadAll(io.LimitReader(file, longest))
	if err != nil {
		return false
	}
	gitDir, ok := strings.CutPrefix(string(content), "gitdir: ")
	return ok && strings.Contains(gitDir, "/worktrees/")
}
