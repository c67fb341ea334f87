package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Beginning is what the files of a new sandbox hold at the start.
type Beginning struct {
	Branch, Commit string           // the head of its own git
	Author         sandbox.Identity // the committer there
	Owner          git.Owner        // the owner of the files on disk
}

// Prepare makes the directory for changes and the home of a new sandbox. It
// must not be called for one that has run.
func (f Files) Prepare(b Beginning) error {
	if err := layer.PrepareUpper(f.Upper(), b.Branch, b.Commit, b.Owner); err != nil {
		return err
	}
	return f.prepareHome(b)
}

// prepareHome writes the git identity into the sandbox's home, where the
// agent's own commits find it.
func (f Files) prepareHome(b Beginning) error {
	if err := os.Mkdir(f.home(), 0o700); err != nil && !(errors.Is(err, fs.ErrExist) && len(f.frozen().Home) > 0) {
		return fault.Wrap(fault.Unavailable, err, "cannot make the sandbox's home")
	}
	path := filepath.Join(f.home(), ".gitconfig")
	content := "[user]\n\tname = " + quoteConfig(b.Author.Name) + "\n\temail = " + quoteConfig(b.Author.Email) +
		"\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n"
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write the sandbox's git identity")
	}
	for _, name := range []string{f.home(), path} {
		if err := b.Owner.Give(name); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot hand the sandbox its home")
		}
	}
	return nil
}

// quoteConfig writes a value for a git configuration file (git-config(1), Values).
func quoteConfig(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value) + `"`
}

// Copying is the copy of layers that a workspace without an overlay begins with.
func (f Files) Copying(layers []string, format string) layer.Copy {
	return layer.Copy{Layers: layers, Upper: f.Upper(), Base: f.Copied(), Format: format}
}

// Rebranch puts the git inside a fork, which has not run, on a branch of its
// own. In a copy it keeps the other one's name.
func (f Files) Rebranch(from, to string, o git.Owner) error {
	if f.Copy {
		return nil
	}
	return layer.Rebranch(f.Upper(), f.frozen().Upper, from, to, o)
}
