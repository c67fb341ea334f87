package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// baseRef is the default base of an update: the branch that it began on; "" for
// none.
func baseRef(record *sandbox.Sandbox) string {
	if git.IsOid(record.BaseRef) {
		return ""
	}
	return record.BaseRef
}

// distances counts how many commits the branches that sandboxes began on are
// ahead of them. Most are not ahead, which costs nothing, and sandboxes of one
// base are counted once.
type distances map[[3]string]int

// of is the number for one sandbox; 0 where that is not known.
func (d distances) of(ctx context.Context, record *sandbox.Sandbox) int {
	ref := baseRef(record)
	if ref == "" {
		return 0
	}
	repo := git.At(ctx, record.GitDir, "", record.Base)
	tip, from := repo.GlanceTip(ref), record.From()
	if tip == "" || tip == from {
		return 0
	}
	key := [3]string{record.GitDir, from, tip}
	if known, ok := d[key]; ok {
		return known
	}
	n, err := repo.CountBetween(ctx, from, tip)
	if err != nil {
		n = 0 // a base that is gone; its state says more
	}
	d[key] = n
	return n
}
