package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/template"
)

// InitRequest writes the first configuration of a repository.
type InitRequest struct {
	Dir      string
	Template string // one of template.Names; empty looks at the repository
	From     string // a .lima-sandbox.toml to take over; empty if there is none
	Force    bool   // also in place of a file that is there
	// Confirm shows the text and asks; nil writes it.
	Confirm func(file, text string) (bool, error)
}

// Initialized is what Init wrote, or would have.
type Initialized struct {
	File    string   `json:"file"`
	Text    string   `json:"text"`
	Found   []string `json:"found"`
	Written bool     `json:"written"`
}

// Init drafts a configuration, shows it, and writes it into the human's checkout.
func (e *Engine) Init(ctx context.Context, r InitRequest) (made Initialized, err error) {
	location, ok := git.Locate(r.Dir)
	if !ok {
		return made, fault.New(fault.NotFound, "cannot write %s: %q is in no git repository", config.RepositoryFile, r.Dir).WithHint("git init")
	}
	made.File = filepath.Join(location.Top, config.RepositoryFile)
	draft, err := drafted(location.Top, r) // first: a mistyped template is not mended by --force
	if err != nil {
		return made, err
	}
	_, err = os.Lstat(made.File)
	if err == nil && !r.Force {
		return made, fault.New(fault.AlreadyExists, "cannot write %s: it exists", made.File).WithHint("litterbox init --force")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return made, fault.Wrap(fault.Unavailable, err, "cannot look at %s", made.File)
	}
	made.Text, made.Found = draft.Text(), draft.Found
	if _, err := config.Parse(made.File, []byte(made.Text)); err != nil {
		return made, fault.Wrap(fault.Invalid, err, "cannot write what was found into %s", config.RepositoryFile).
			WithHint("litterbox init --template full")
	}
	if r.Confirm != nil {
		if yes, err := r.Confirm(made.File, made.Text); err != nil || !yes {
			return made, err
		}
	}
	_, call, err := e.record(ctx, "init", location.Top, "", map[string]any{"template": r.Template, "from": r.From, "force": r.Force})
	if err != nil {
		return made, err
	}
	defer func() { err = call.end("", nil, err) }()
	if err := git.ReplaceFile(made.File, []byte(made.Text)); err != nil {
		return made, fault.Wrap(fault.Unavailable, err, "cannot write %s", made.File)
	}
	made.Written = true
	return made, os.Chmod(made.File, 0o644)
}

// largestDraft bounds how much of a file to take over is read.
const largestDraft = 1 << 20

func drafted(top string, r InitRequest) (template.Draft, error) {
	switch {
	case r.Template != "" && r.From != "":
		return template.Draft{}, fault.New(fault.Invalid, "cannot use a template and a file at once").WithHint("litterbox init --from %s", r.From)
	case r.Template != "":
		return template.Of(r.Template)
	case r.From != "":
		file, err := os.Open(r.From)
		if err != nil {
			return template.Draft{}, fault.Wrap(fault.NotFound, err, "cannot read %q", r.From)
		}
		content, err := io.ReadAll(io.LimitReader(file, largestDraft))
		if err = errors.Join(err, file.Close()); err != nil {
			return template.Draft{}, fault.Wrap(fault.Unavailable, err, "cannot read %q", r.From)
		}
		return template.FromLima(filepath.Base(r.From), content)
	}
	return template.Look(top, func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	})
}
