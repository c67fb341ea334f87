package driver

// Live is a workspace that is a directory of the host itself, at its own path
// (a driver says with Traits.Live whether it can show one). Writes inside go
// there. Paths in it are relative to Workspace.Path.
type Live struct {
	// ReadOnly are files and directories that can be neither written, replaced,
	// renamed nor removed inside. Missing ones are left out.
	ReadOnly []string `json:"read_only,omitempty"`
	// Fixed are directories that cannot be renamed or removed inside, because
	// something that is read-only lies below them.
	Fixed []string `json:"fixed,omitempty"`
	// Git is the repository; it is nil when there is none, and when the
	// directory's own .git can be written.
	Git *LiveGit `json:"git,omitempty"`
}

// LiveGit shows the git directory of a live workspace read-only, except for its
// objects and refs. The files that git keeps for each worktree (HEAD, index)
// are in Own, which takes the place of .git inside, as that of a linked
// worktree does.
type LiveGit struct {
	Own    string `json:"own"`    // directory of the sandbox
	Logs   string `json:"logs"`   // likewise, in place of the host's reflogs
	Common string `json:"common"` // the host's git directory, shared by worktrees
	Linked bool   `json:"linked"` // .git of the workspace is a file
}

// Where a live repository is inside: the host's git directory, and Own when .git
// is a file.
const (
	LiveCommon = "/.litterbox/checkout.git"
	LiveOwn    = "/.litterbox/worktree.git"
)

// LiveWritable lists the directories of LiveCommon that can be written.
func LiveWritable() []string { return []string{"objects", "refs"} }
