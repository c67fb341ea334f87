package engine

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
	"github.com/litterbox-sandbox/litterbox/internal/egress/preset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// NoSandbox says that no sandbox of the repository is called typed, and which of
// names was probably meant.
func NoSandbox(typed string, names []string) error {
	which := didYouMean(typed, names)
	if worker := workerCalled(typed, names); worker != "" {
		which = fmt.Sprintf("; did you mean %q?", worker)
	}
	return fault.New(fault.NotFound, "no sandbox named %q in this repository%s", typed, which).
		WithHint("litterbox list")
}

// workerCalled is the worker that was named by its number, or without its project.
func workerCalled(typed string, names []string) string {
	const word = "worker-"
	number := strings.TrimPrefix(typed, word)
	if _, err := strconv.ParseUint(number, 10, 32); err != nil {
		return ""
	}
	for _, name := range names {
		if strings.HasSuffix(name, "-"+word+number) {
			return name
		}
	}
	return ""
}

// didYouMean ends a message about a name that does not exist; it is empty when
// none of names is near.
func didYouMean(typed string, names []string) string {
	near := agents.Nearest(typed, names)
	if near == "" || near == typed {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// noService says that a sandbox has no service of that name.
func noService(sandbox, typed string, names []string) error {
	return fault.New(fault.NotFound, "no service named %q in sandbox %q%s", typed, sandbox, didYouMean(typed, names)).
		WithHint("litterbox service %s status", sandbox)
}

// noWish says that nothing of that name can be done about services.
func noWish(sandbox, typed string) error {
	names := []string{"logs"}
	for _, wish := range service.Wishes() {
		names = append(names, string(wish))
	}
	near := agents.Nearest(typed, names)
	which := didYouMean(typed, names)
	if which == "" {
		which = ": its actions are " + strings.Join(names, ", ")
	}
	return fault.New(fault.Invalid, "cannot %q a service%s", typed, which).
		WithHint("litterbox service %s %s", sandbox, cmp.Or(near, "status"))
}

// serviceNames are the names of services, in their order.
func serviceNames(services []service.Spec) []string {
	names := make([]string, len(services))
	for i, s := range services {
		names[i] = s.Name
	}
	return names
}

// noPort says that a sandbox forwards no port of that name.
func noPort(sandbox, typed string, ports []Port) error {
	names := make([]string, len(ports))
	for i, port := range ports {
		names[i] = port.Name
	}
	return fault.New(fault.NotFound, "no port named %q in sandbox %q%s", typed, sandbox, didYouMean(typed, names)).
		WithHint("litterbox ports %s", sandbox)
}

// noSnapshot says that a sandbox has no snapshot of that name or label.
func noSnapshot(name, typed string, snapshots []*sandbox.Snapshot) error {
	var names []string
	for _, one := range snapshots {
		if one.Label != "" { // numbers are all near each other
			names = append(names, one.Label)
		}
	}
	return fault.New(fault.NotFound, "sandbox %q has no snapshot %q%s", name, typed, didYouMean(typed, names)).
		WithHint("litterbox snapshots %s", name)
}

// noGolden says that a repository has no golden of that name.
func (e *Engine) noGolden(gitDir, typed, verb string) error {
	found, err := e.goldens(gitDir)
	if err != nil {
		found = nil // what is missing is the answer, and a near name only a help
	}
	names := make([]string, len(found))
	for i, g := range found {
		names[i] = g.Name
	}
	return missingGolden(typed, verb, names)
}

// missingGolden is noGolden where the names are known.
func missingGolden(typed, verb string, names []string) error {
	err := fault.New(fault.NotFound, "cannot %s the golden %q: no golden has this name%s", verb, typed, didYouMean(typed, names))
	if verb == "delete" || verb != "begin with" && typed != DefaultGolden && len(names) > 0 { // those are of one that exists
		return err.WithHint("litterbox golden list")
	}
	g := golden{Name: typed}
	return err.WithHint("%s", g.rebuild())
}

// noPreset says that no network preset has that name.
func noPreset(typed string) error {
	return fault.New(fault.NotFound, "cannot find the network preset %q%s", typed, didYouMean(typed, preset.Names())).
		WithHint("litterbox network presets")
}

// noSandbox is NoSandbox for the sandboxes of the repository that dir belongs
// to. An error of another kind, or outside of any repository, is returned as it
// is.
func (e *Engine) noSandbox(ctx context.Context, dir, slug string, err error) error {
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	gitDir, outside := gitDirOf(ctx, dir)
	if outside != nil {
		return err
	}
	if e.wasDeleted(ctx, gitDir, slug) {
		return fault.New(fault.NotFound, "no sandbox named %q in this repository: it was deleted", slug).
			WithHint("litterbox trash restore %s", slug)
	}
	return NoSandbox(slug, e.sandboxNames(ctx, dir))
}

// sayMissing notes that a sandbox that is watched does not exist: it may be made
// later, or its name is mistyped.
func (e *Engine) sayMissing(ctx context.Context, dir, name string) {
	if name == "" {
		return
	}
	if exists, err := e.Exists(ctx, dir, name); err != nil || exists {
		return
	}
	e.say([]string{fmt.Sprintf("no sandbox is named %q yet%s", name, didYouMean(name, e.sandboxNames(ctx, dir)))})
}

// sandboxNames are the names of the sandboxes of the repository that dir belongs
// to, as far as they can be read.
func (e *Engine) sandboxNames(ctx context.Context, dir string) []string {
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return nil
	}
	records, _, err := e.Store.Sandboxes()
	if err != nil {
		return nil
	}
	var names []string
	for _, record := range records {
		if record.GitDir == gitDir {
			names = append(names, record.Name)
		}
	}
	return names
}
