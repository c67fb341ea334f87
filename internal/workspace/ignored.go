package workspace

import "context"

// Pruner is a workspace whose listing costs as much as it names. It can leave out
// what git ignores: directories that the host will not look into. That only saves
// work. If the host asks anyway, they are listed then, so no rule has to be right.
type Pruner interface {
	Workspace

	// ChangesBut is Changes without the content of ignored directories, which
	// are listed when they are opened.
	ChangesBut(ctx context.Context, rules Rules) (Changes, error)
}

// Rules say what git ignores, as far as known before anything is listed.
type Rules struct {
	Fold  bool     // core.ignoreCase
	Texts [][]byte // of core.excludesFile, info/exclude and the base's topmost .gitignore
}
