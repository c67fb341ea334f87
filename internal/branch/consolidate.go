package branch

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// packsSuffix is the file beside the delta in which git notes each pack it
// wrote for the sandbox, one line each (fast-import --export-pack-edges).
const packsSuffix = ".packs"

const (
	// ownPacks is how many packs one sandbox may leave before they are joined.
	ownPacks = 20
	// allPacks is how many packs a repository may have before that; the user's
	// gc.autoPackLimit is 50.
	allPacks = 40
	// settledPack is the size in bytes from which a joined pack is left alone.
	settledPack = 16 << 20
	// hugePack is the size in bytes from which a pack is not touched at all.
	hugePack = 256 << 20
)

// ownedPacks lists the packs in the note that still exist. The user's own git
// may have packed them elsewhere.
func (r *Repository) ownedPacks(state string) []string {
	note, err := os.ReadFile(state + packsSuffix)
	if err != nil {
		return nil
	}
	var packs []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(note)) {
		path, _, ok := strings.Cut(line, ".pack:")
		name := filepath.Base(path)
		if !ok || seen[name] || !strings.HasPrefix(name, "pack-") || !isOid(name[len("pack-"):]) {
			continue
		}
		seen[name] = true
		if info, err := os.Stat(r.packPath(name, ".pack")); err == nil && info.Size() < hugePack {
			packs = append(packs, name)
		}
	}
	return packs
}

func (r *Repository) packPath(name, extension string) string {
	return filepath.Join(r.CommonDir, "objects", "pack", name+extension)
}

// written looks after the pack that an import left, and tells whether it is
// time to join packs.
func (r *Repository) written(state string) bool {
	packs := r.ownedPacks(state)
	if len(packs) > 0 {
		last := packs[len(packs)-1]
		startWriteback(r.packPath(last, ".pack"))
		startWriteback(r.packPath(last, ".idx"))
	}
	if len(packs) >= ownPacks {
		return true
	}
	all, err := os.ReadDir(filepath.Join(r.CommonDir, "objects", "pack"))
	if err != nil || len(packs) < ownPacks/4 {
		return false
	}
	count := 0
	for _, e := range all {
		if strings.HasSuffix(e.Name(), ".pack") {
			count++
		}
	}
	return count >= allPacks
}

// Consolidate joins the small packs that imports left for one sandbox, so that
// they neither slow git down nor trip the user's gc.auto. Objects are never
// lost: the old packs go only after the new one stands. The caller holds the
// sandbox's lock.
func (r *Repository) Consolidate(ctx context.Context, state string) error {
	packs := r.ownedPacks(state)
	if len(packs) < 2 {
		return nil
	}
	c := r.git("pack-objects", "--stdin-packs", "--delta-base-offset", "--no-reuse-object", "-q",
		filepath.Join(r.CommonDir, "objects", "pack", "pack"))
	c.stdin = strings.NewReader(strings.Join(packs, ".pack\n") + ".pack\n")
	out, err := c.output(ctx)
	if err != nil {
		return fault.Wrap("", err, "cannot join the packs of the sandbox")
	}
	joined := "pack-" + string(bytes.TrimSpace(out))
	info, err := os.Stat(r.packPath(joined, ".idx"))
	if err != nil || !isOid(strings.TrimPrefix(joined, "pack-")) {
		return fault.Wrap(fault.Internal, err, "cannot find the joined pack")
	}
	note := ""
	if info, err = os.Stat(r.packPath(joined, ".pack")); err == nil && info.Size() < settledPack {
		note = r.packPath(joined, ".pack") + ": \n"
	}
	// The note first: a crash after it leaves the old packs, which is harmless.
	if err := os.WriteFile(state+packsSuffix, []byte(note), 0o600); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", state+packsSuffix)
	}
	for _, name := range packs {
		if name == joined {
			continue
		}
		// The index first, as git does: a pack without one is not used, an
		// index without its pack is an error.
		for _, extension := range []string{".idx", ".rev", ".pack"} {
			if err := os.Remove(r.packPath(name, extension)); err != nil && !os.IsNotExist(err) {
				return fault.Wrap(fault.Unavailable, err, "cannot remove a joined pack")
			}
		}
	}
	return nil
}
