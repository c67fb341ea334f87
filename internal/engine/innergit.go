package engine

import (
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// aboutDamage names what keeps git inside from working, and the command inside that
// mends it. The guest names the damage by a word of the wire, not by text: the
// guest is not trusted.
func (p *place) aboutDamage(damage string) string {
	what := "the git repository inside is damaged"
	switch damage {
	case wire.DamageGone:
		what = "the git repository inside is gone: .git was removed"
	case wire.DamageHead:
		what = "the git repository inside is damaged: git cannot read its HEAD or refs"
	case wire.DamageObjects:
		what = "the git repository inside is damaged: objects of its history are missing"
	}
	mend := "sh " + quoteCommand([]string{layer.Mend, p.record.Branch})
	if p.copied() || p.record.Isolation == sandbox.IsolationDegraded {
		mend = "rm -rf .git && git init -q && git add -A && git commit -qm 'Start a new history'"
	}
	return what + " (the files are committed all the same). To repair it, run inside: " + mend
}
