package git

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// PacksSuffix is the file beside the delta in which git notes each pack it
// wrote for the sandbox, one line each (fast-import --export-pack-edges):
// "<path>.pack: <commits>". Packs that were joined are noted as "<path>.pack: joined".
const PacksSuffix = ".packs"

const (
	// freshPacks is how many packs of single commits one sandbox leaves before
	// they should be joined, and mostPacks how many it may have if no process
	// has joined them; joinedPacks is how many joined packs make a larger one.
	// Three busy sandboxes stay below the user's gc.autoPackLimit, which is 50.
	freshPacks  = 6
	mostPacks   = 12
	joinedPacks = 3
	// allPacks is how many packs a repository may have before fewer fresh ones
	// call for joining.
	allPacks = 30
	// settledPack is the size in bytes from which a joined pack is left alone,
	// and hugePack the size from which any pack is.
	settledPack = 16 << 20
	hugePack    = 256 << 20
)

// owned are the packs that imports left for one sandbox.
type owned struct{ fresh, joined []string }

// ownedPacks reads the note and lists the packs that still exist: the user's
// own git may have repacked them.
func (r *Repository) ownedPacks(state string) owned {
	var packs owned
	note, err := os.ReadFile(state + PacksSuffix)
	if err != nil {
		return packs
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(note)) {
		path, rest, ok := strings.Cut(line, ".pack:")
		name := filepath.Base(path)
		if !ok || seen[name] || !strings.HasPrefix(name, "pack-") || !IsOid(name[len("pack-"):]) {
			continue
		}
		seen[name] = true
		info, err := os.Stat(r.PackPath(name, ".pack"))
		switch {
		case err != nil || info.Size() >= hugePack:
		case strings.TrimSpace(rest) != "joined":
			packs.fresh = append(packs.fresh, name)
		case info.Size() < settledPack:
			packs.joined = append(packs.joined, name)
		}
	}
	return packs
}

func (r *Repository) PackPath(name, extension string) string {
	return filepath.Join(r.CommonDir, "objects", "pack", name+extension)
}

// Packing says how urgent it is to call Consolidate.
type Packing int

// From nothing to do, to some time soon, to before the next commit.
const (
	PackingNone Packing = iota
	PackingDue
	PackingOverdue
)

// Written looks after the pack that an import left, and reports whether it is
// time to join packs.
func (r *Repository) Written(state string) Packing {
	packs := r.ownedPacks(state).fresh
	if len(packs) > 0 {
		last := packs[len(packs)-1]
		startWriteback(r.PackPath(last, ".pack"))
		startWriteback(r.PackPath(last, ".idx"))
	}
	switch {
	case len(packs) >= mostPacks:
		return PackingOverdue
	case len(packs) >= freshPacks:
		return PackingDue
	case len(packs) < freshPacks/2:
		return PackingNone
	}
	all, err := os.ReadDir(filepath.Join(r.CommonDir, "objects", "pack"))
	if err != nil {
		return PackingNone
	}
	count := 0
	for _, e := range all {
		if strings.HasSuffix(e.Name(), ".pack") {
			count++
		}
	}
	if count < allPacks {
		return PackingNone
	}
	return PackingDue
}

// Consolidation asks for the packs of one sandbox to be joined.
type Consolidation struct {
	State string // as in ImportRequest
	// Lock takes a lock of the sandbox: "packs" against others that
	// consolidate, and for a moment "commit", which callers of Import hold.
	Lock func(ctx context.Context, name string) (unlock func(), err error)
	Idle bool // use only idle resources
}

// Consolidate joins the small packs that imports left for one sandbox, so that
// they neither slow git down nor trip the user's gc.auto. Commits go on
// meanwhile. Objects are never lost: the old packs are removed only after the
// new one is in place. In a large repository it takes about 50 ms.
func (r *Repository) Consolidate(ctx context.Context, q Consolidation) error {
	unlock, err := q.Lock(ctx, "packs")
	if err != nil {
		return err
	}
	defer unlock()
	packs := r.ownedPacks(q.State)
	if len(packs.fresh) < 2 {
		return nil
	}
	// Packs written by imports are not compressed yet.
	name, err := r.join(ctx, q, packs.fresh, "--no-reuse-object")
	if err != nil {
		return err
	}
	old := packs.fresh
	if joined := append(packs.joined, name); len(joined) >= joinedPacks {
		if name, err = r.join(ctx, q, joined); err != nil {
			return err
		}
		old = append(old, joined...)
	}
	// In one step, even where packs were joined twice: a git that does not find
	// an object in the packs it knows lists them once more, not twice.
	return r.replace(ctx, q, name, old)
}

// join makes one pack of several and returns its name.
func (r *Repository) join(ctx context.Context, q Consolidation, packs []string, flags ...string) (string, error) {
	objects, err := r.objectsOf(packs)
	if err != nil {
		return "", err
	}
	// A plain list: --stdin-packs (git 2.32) would walk the whole tree of every
	// commit, 110 ms at 100,000 files.
	c := r.Command(append([]string{"pack-objects", "--delta-base-offset", "-q"}, flags...)...)
	c.Args = append(c.Args, filepath.Join(r.CommonDir, "objects", "pack", "pack"))
	c.Stdin, c.Idle, c.Modest = strings.NewReader(objects), q.Idle, true
	out, err := c.Line(ctx)
	if err != nil {
		return "", fault.Wrap("", err, "cannot join the packs of the sandbox")
	}
	name := "pack-" + out
	if _, err := os.Stat(r.PackPath(name, ".idx")); err != nil || !IsOid(out) {
		return "", fault.Wrap(fault.Internal, err, "cannot find the joined pack")
	}
	return name, nil
}

// replace notes the pack that stays and removes the ones it was made of. The
// note comes first: a crash after it leaves unneeded packs, which is harmless.
// Packs written since stay noted as they were.
func (r *Repository) replace(ctx context.Context, q Consolidation, joined string, old []string) error {
	unlock, err := q.Lock(ctx, "commit")
	if err != nil {
		return err
	}
	defer unlock()
	noted, err := os.ReadFile(q.State + PacksSuffix)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read %q", q.State+PacksSuffix)
	}
	note := r.PackPath(joined, ".pack") + ": joined\n"
	for line := range strings.Lines(string(noted)) {
		path, _, _ := strings.Cut(line, ".pack:")
		if name := filepath.Base(path); name != joined && !slices.Contains(old, name) {
			note += line
		}
	}
	// In place: a running git appends to this very file.
	if err := os.WriteFile(q.State+PacksSuffix, []byte(note), 0o600); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", q.State+PacksSuffix)
	}
	for _, name := range old {
		if name == joined {
			continue
		}
		// The index first, as git does: a pack without one is not used, an
		// index without its pack is an error.
		for _, extension := range []string{".idx", ".rev", ".pack"} {
			if err := os.Remove(r.PackPath(name, extension)); err != nil && !os.IsNotExist(err) {
				return fault.Wrap(fault.Unavailable, err, "cannot remove a joined pack")
			}
		}
	}
	return nil
}

// objectsOf lists the objects of packs from their indexes, one on each line:
// gitformat-pack(5), version 2.
func (r *Repository) objectsOf(packs []string) (string, error) {
	const header, fanout = 8, 256 * 4
	var list strings.Builder
	for _, name := range packs {
		index, err := os.ReadFile(r.PackPath(name, ".idx"))
		if err != nil {
			return "", fault.Wrap(fault.Unavailable, err, "cannot read the index of a pack")
		}
		if len(index) < header+fanout || string(index[:header]) != "\xfftOc\x00\x00\x00\x02" {
			return "", fault.New(fault.Unsupported, "cannot read the index of the pack %q: unknown version", name)
		}
		count := int(binary.BigEndian.Uint32(index[header+fanout-4:]))
		names, size := index[header+fanout:], r.HexLen()/2
		if count > len(names)/size {
			return "", fault.New(fault.Internal, "cannot read the index of the pack %q: it is too short", name)
		}
		for ; count > 0; count-- {
			list.WriteString(hex.EncodeToString(names[:size]))
			list.WriteByte('\n')
			names = names[size:]
		}
	}
	return list.String(), nil
}
