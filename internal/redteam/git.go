package redteam

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// gitAttacks plant repositories that run code in any git that opens them.
func gitAttacks() []Attack {
	// One of each kind; the attack tests try them all.
	common := []string{"core.fsmonitor", "hooks", "core.hooksPath", "filter clean", "diff.external", "gpg.program", "commondir", "nested bare repository"}
	var all []Attack
	for _, h := range HostileRepositories() {
		if !slices.Contains(common, h.Name) {
			continue
		}
		all = append(all, Attack{
			name:  "git: " + h.Name,
			fresh: true,
			try:   func(ctx context.Context, w *world, p place) (outcome, error) { return runOnHost(ctx, w, p, h) },
		})
	}
	return all
}

// runOnHost plants and then does what a human does with a sandbox.
func runOnHost(ctx context.Context, w *world, p place, h Hostile) (outcome, error) {
	if _, err := w.touched(); err != nil { // left by an earlier one
		return outcome{}, err
	}
	did, err := p.work(ctx, h.Script(w.canary))
	if err != nil {
		return outcome{}, err
	}
	if !p.inside() {
		_, err = p.shell(ctx, h.Trigger)
	} else {
		// Code that ran inside found no such directory.
		err = wantServed(did)
		for _, args := range [][]string{
			{"exec", p.box, "--", "/bin/sh", "-c", "echo again >> README"}, {"status", p.box}, {"log", p.box}, {"diff", p.box}, {"stop", p.box},
		} {
			if got := w.litterbox(ctx, args...); got.code != 0 && err == nil {
				err = fmt.Errorf("litterbox %s: %s", args[0], got.said())
			}
		}
	}
	names, touchedErr := w.touched()
	if err == nil {
		err = touchedErr
	}
	if len(names) == 0 {
		return outcome{seen: "nothing of it runs on the host"}, err
	}
	return outcome{escaped: true, seen: "on the host runs " + strings.Join(names, ", ")}, err
}
