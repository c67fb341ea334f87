package engine

import (
	"context"
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// NoSandbox says that no sandbox of the repository is called typed, and which of
// names was probably meant.
func NoSandbox(typed string, names []string) error {
	return fault.New(fault.NotFound, "no sandbox named %q in this repository%s", typed, didYouMean(typed, names)).
		WithHint("litterbox list")
}

// didYouMean ends a message about a name that does not exist; it is empty when
// none of names is near.
func didYouMean(typed string, names []string) string {
	near := agents.Nearest(typed, names)
	if near == "" || near == typed {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// noSandbox is NoSandbox for the sandboxes of the repository that dir belongs
// to. An error of another kind, or outside of any repository, is returned as it
// is.
func (e *Engine) noSandbox(ctx context.Context, dir, slug string, err error) error {
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	if _, outside := gitDirOf(ctx, dir); outside != nil {
		return err
	}
	return NoSandbox(slug, e.sandboxNames(ctx, dir))
}

// sayMissing notes that a sandbox that is watched does not exist: it may be made
// later, or its name is mistyped.
func (e *Engine) sayMissing(ctx context.Context, dir, name string) {
	if name == "" {
		return
	}
	if exists, err := e.Exists(ctx, dir, name); err != nil || exists {
		return
	}
	e.say([]string{fmt.Sprintf("no sandbox is named %q yet%s", name, didYouMean(name, e.sandboxNames(ctx, dir)))})
}

// sandboxNames are the names of the sandboxes of the repository that dir belongs
// to, as far as they can be read.
func (e *Engine) sandboxNames(ctx context.Context, dir string) []string {
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return nil
	}
	records, _, err := e.Store.Sandboxes()
	if err != nil {
		return nil
	}
	var names []string
	for _, record := range records {
		if record.GitDir == gitDir {
			names = append(names, record.Name)
		}
	}
	return names
}
