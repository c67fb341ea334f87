package engine

import (
	"maps"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/config"
)

// parts are the origins that are parts of the configuration with work of their own. The
// others, the environment and files, are read by commands: all of them may read all of
// those.
func parts() []string {
	return []string{fromImage, fromPackages, fromAgents, fromProvision, fromTools, fromSetUp, fromServices, fromSync}
}

// syncParts are those of the parts that SkipSync leaves out and SyncOnly runs alone.
func syncParts() []string { return []string{fromServices, fromSync} }

// toRun lists the parts that a build makes, in order. The sandbox may be restarted for
// the agents, so they come first. An update begins with a golden in which all have run: it
// runs the provisioning and the set-up again where their command has changed, anything
// that they may have read, or a part before them whose result they may have used.
func (b *building) toRun(c config.Config) (ran []string) {
	changed := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(b.changed, name) })
	}
	inputs := slices.ContainsFunc(b.changed, func(name string) bool { return !slices.Contains(parts(), name) })
	whole := !b.request.SyncOnly
	again := func(argv []string, names ...string) bool {
		return whole && (!b.request.Update || len(argv) > 0 && (inputs || changed(names...)))
	}
	for _, one := range []struct {
		name string
		runs bool
	}{
		{fromAgents, whole},
		{fromProvision, again(c.Hooks.PostProvision, fromProvision)},
		{fromTools, whole},
		{fromSetUp, again(c.Container.SetupCommand, fromProvision, fromTools, fromSetUp)},
		{fromServices, !b.request.SkipSync},
		{fromSync, !b.request.SkipSync},
	} {
		if one.runs {
			ran = append(ran, one.name)
		}
	}
	return ran
}

// keptParts lists the commands that an update does not run because nothing has changed
// for them.
func (b *building) keptParts(c config.Config) (kept []string) {
	if !b.request.Update || b.request.SyncOnly {
		return nil
	}
	for name, argv := range map[string][]string{fromProvision: c.Hooks.PostProvision, fromSetUp: c.Container.SetupCommand} {
		if len(argv) > 0 && !slices.Contains(b.ran, name) {
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	return kept
}

// keepsMadeFrom records a part as made only if it ran. A build forgets the parts that it
// skipped, so that the golden is stale until they run. An update keeps the recorded
// origins of what it did not make again: those of the parts that it did not run, and of the
// files and the environment that commands which did not run may have read. What an image
// or packages brought is in files that were kept.
func (b *building) keepsMadeFrom() {
	g := b.golden
	if b.from == nil {
		maps.DeleteFunc(g.MadeFrom, func(name, _ string) bool {
			return b.request.SkipSync && slices.Contains(syncParts(), name)
		})
		return
	}
	g.Repository, g.Home = b.from.Repository, b.from.Home // files that were kept may name them
	readAgain := true
	for _, name := range []string{fromProvision, fromSetUp, fromSync} {
		_, had := b.from.MadeFrom[name]
		readAgain = readAgain && (!had || slices.Contains(b.ran, name))
	}
	again := func(name string) bool {
		if slices.Contains(parts(), name) {
			return slices.Contains(b.ran, name)
		}
		return readAgain
	}
	maps.DeleteFunc(g.MadeFrom, func(name, _ string) bool { return !again(name) })
	for name, hash := range b.from.MadeFrom {
		if !again(name) {
			g.MadeFrom[name] = hash
		}
	}
}
