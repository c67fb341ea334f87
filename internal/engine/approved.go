package engine

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// A merge with conflicts is finished by a later command, which does not ask again about
// what was approved at its start. The record is the tip, one line for each approved
// content, and one for each path with a conflict, which the human has resolved.

func (p *place) approvedFile() string { return p.path("approved") }

const resolved = "resolved "

// remember writes down what was approved.
func (e *Engine) remember(p *place, tip string, approved []landing.Risk, conflicts []string) error {
	var lines strings.Builder
	lines.WriteString(tip + "\n")
	for _, risk := range approved {
		lines.WriteString(risk.Key() + "\n")
	}
	for _, path := range conflicts {
		lines.WriteString(resolved + strconv.Quote(path) + "\n")
	}
	if err := os.WriteFile(p.approvedFile(), []byte(lines.String()), 0o600); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write down what was approved")
	}
	return nil
}

// notRemembered leaves out what was approved before. Without a readable record it
// leaves out nothing.
func (e *Engine) notRemembered(p *place, tip string, risks []landing.Risk) []landing.Risk {
	content, err := os.ReadFile(p.approvedFile())
	if err != nil || !strings.HasPrefix(string(content), tip+"\n") {
		return risks
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		known[strings.TrimSuffix(line, "\n")] = true
	}
	return slices.DeleteFunc(slices.Clone(risks), func(r landing.Risk) bool {
		return known[r.Key()] || known[resolved+strconv.Quote(r.Path)]
	})
}

// forget drops the record.
func (e *Engine) forget(p *place) error {
	if err := os.Remove(p.approvedFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot forget what was approved")
	}
	return nil
}
