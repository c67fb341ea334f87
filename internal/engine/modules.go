package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// keepModules takes over the list of submodules in the layers, and remembers the
// commits taken from them before.
func (p *place) keepModules(made layer.Layers) {
	for n := range made.Modules.List {
		for _, had := range p.record.Modules.List {
			if had.Path == made.Modules.List[n].Path {
				made.Modules.List[n].Head = had.Head
			}
		}
	}
	p.record.Modules = made.Modules
	p.note(made.Notes...)
}

// moduleHeads are the commits of the submodules inside.
type moduleHeads struct {
	stand map[string]string // those directly in the repository, for its commit
	taken map[string]string // all
	left  []string          // those that hold what was not taken
}

func (h moduleHeads) remember(r *sandbox.Sandbox) {
	for n := range r.Modules.List {
		if head, ok := h.taken[r.Modules.List[n].Path]; ok {
			r.Modules.List[n].Head = head
		}
	}
}

// moduleCommits takes over the agent's commits in submodules, and gives the
// present commits of those. A failure is a note, and the submodule stays where it
// was.
func (e *Engine) moduleCommits(ctx context.Context, p *place) (moduleHeads, []string) {
	heads := moduleHeads{stand: map[string]string{}, taken: map[string]string{}}
	var notes []string
	for _, m := range p.record.Modules.List {
		if m.Origin == "" || !e.touched(ctx, p, m) {
			continue
		}
		head, found, err := e.moduleCommit(ctx, p, m)
		if err != nil {
			notes = append(notes, fmt.Sprintf("the commits in the submodule %q were not taken over: %v", m.Path, err))
			heads.left = append(heads.left, m.Path)
			continue
		}
		if found.Changed {
			notes = append(notes, fmt.Sprintf("the submodule %q holds changes that are not committed in it: they stay in the sandbox (git -C %s commit)", m.Path, m.Path))
			heads.left = append(heads.left, m.Path)
		}
		if head == "" {
			continue
		}
		heads.taken[m.Path] = head
		if p.inRepository(m) {
			heads.stand[m.Path] = head
		}
		if head != m.Head && head != m.Commit {
			notes = append(notes, fmt.Sprintf("the submodule %q stands at %s, which %s has by now (after a merge: git submodule update; push it before the branch)", m.Path, head[:12], m.Origin))
		}
	}
	return heads, notes
}

// inRepository reports whether the repository itself names the submodule's
// commit, and no other submodule does.
func (p *place) inRepository(m sandbox.Module) bool {
	for _, other := range p.record.Modules.List {
		if strings.HasPrefix(m.Path, other.Path+"/") {
			return false
		}
	}
	return true
}

// touched reports, without a question to the sandbox, whether anything in a
// submodule can have changed.
func (e *Engine) touched(ctx context.Context, p *place, m sandbox.Module) bool {
	touched, err := e.workspace(p).Touched(ctx, m.Path, filepath.Join(".git", m.GitDir))
	return touched || err != nil // if unknown, ask the sandbox
}

// moduleCommit takes over the commits of one submodule. The commit is empty where
// the submodule is gone.
func (e *Engine) moduleCommit(ctx context.Context, p *place, m sandbox.Module) (string, wire.Module, error) {
	stream, err := p.dial(ctx)
	if err != nil {
		return m.Head, wire.Module{}, nil // not running: they come out at the next start
	}
	defer stream.Close()
	found, err := wire.FindModule(ctx, stream, m.Path)
	if err != nil || found.Commit == "" {
		return m.Head, found, err
	}
	have := m.Head
	if have == "" {
		have = m.Commit
	}
	if found.Commit == have {
		return have, found, nil
	}
	name := sha256.Sum256([]byte(m.GitDir))
	quarantine := branch.Quarantine{
		Dir: p.path("received-" + hex.EncodeToString(name[:8])), GitDir: filepath.Join(p.record.Modules.Layer, ".git", m.GitDir),
	}
	if err := quarantine.Refused(found.Commit); err != nil {
		return "", found, err
	}
	export, err := p.dial(ctx)
	if err != nil {
		return "", found, err
	}
	defer export.Close()
	ctx, cancel := context.WithTimeout(ctx, exportPatience)
	defer cancel()
	pack, writer := io.Pipe()
	go func() { writer.CloseWithError(wire.TakeModule(ctx, export, m.Path, have, found.Commit, writer)) }()
	defer pack.Close()
	err = branch.ReceiveModule(ctx, p.repo, quarantine, m, pack, found.Commit, m.Head)
	return found.Commit, found, err
}
