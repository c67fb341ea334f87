package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// InstallRequest asks for packages in a sandbox's system directories.
type InstallRequest struct {
	Dir      string // any directory of the repository
	Name     string // of the sandbox
	Packages []string
	// Stop ends what is at work in the sandbox, which starts again with the
	// packages. Without Stop they then wait for the next start.
	Stop bool
	// Inside says that a program in the sandbox asks: its network rules hold, files
	// of this machine are refused, and nothing is ended.
	Inside bool
	Output io.Writer // takes what the package manager prints while it runs; nil drops it
}

// Installation is what Install did. The JSON fields are pinned by a golden file;
// add, never rename.
type Installation struct {
	Name     string   `json:"name"`
	Packages []string `json:"packages"`
	InForce  bool     `json:"in_force"` // false: from the next start on
	Notes    []string `json:"-"`
}

// Install has a package manager install packages for one sandbox, in a place of its
// own that has neither the workspace nor HOME. Its output becomes a frozen layer
// above the system directories, which the sandbox and its forks, snapshots and
// goldens see read-only. The host's own directories never change.
func (e *Engine) Install(ctx context.Context, request InstallRequest) (done Installation, err error) {
	if request.Inside {
		// Before any look: whether a file is there is not for a program inside to know.
		if i := slices.IndexFunc(request.Packages, isPackageFile); i >= 0 {
			return Installation{}, fault.New(fault.Denied, "cannot install %q: a program inside may name packages, not files of this machine", request.Packages[i]).
				WithHint("litterbox install %s FILE", request.Name)
		}
	}
	packages, files, err := namedPackages(request.Name, request.Packages)
	if err != nil {
		return Installation{}, err
	}
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return Installation{}, err
	}
	ctx, call, err := e.recordIn(ctx, p, "install", map[string]any{"packages": request.Packages, "inside": request.Inside})
	if err != nil {
		return Installation{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	if err := e.configure(ctx, p); err != nil {
		return Installation{}, err
	}
	done = Installation{Name: p.record.Name, Packages: request.Packages}
	p.notes = nil
	if err := e.install(ctx, p, installation{packages: packages, files: files, output: request.Output, inside: request.Inside}); err != nil {
		return Installation{}, err
	}
	if request.Inside {
		p.note("the packages become visible once the commands that run in the sandbox have ended")
		done.Notes = p.notes
		return done, p.renewLater()
	}
	done.InForce, err = e.renewSystem(ctx, p, request.Stop)
	done.Notes = p.notes
	return done, err
}

// renewSystem starts a sandbox again, so that it sees its packages, unless
// something is at work in it.
func (e *Engine) renewSystem(ctx context.Context, p *place, end bool) (bool, error) {
	if state, _ := e.state(ctx, p.record); state != sandbox.Running {
		return true, nil // its next start sees them
	}
	work, err := e.workBefore(ctx, p, end)
	if err != nil {
		return false, err
	}
	if held := holding(work); len(held) > 0 && !end {
		p.note("the packages become visible at the next start, because of " + nameWork(held) + ": litterbox stop " + p.record.Name)
		return false, p.renewLater()
	}
	if len(work) > 0 {
		if err := e.quiesce(ctx, p); err != nil {
			return false, err
		}
	}
	if err := errors.Join(e.settle(ctx, p), e.stop(ctx, p)); err != nil {
		return false, err
	}
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return false, err
	}
	return true, stream.Close()
}

// namedPackages tells packages from files of this machine.
func namedPackages(name string, all []string) (packages, files []string, err error) {
	if len(all) == 0 {
		return nil, nil, fault.New(fault.Invalid, "cannot install packages: none was named").WithHint("litterbox install %s ripgrep", name)
	}
	for _, one := range all {
		if isPackageFile(one) {
			path, err := filepath.Abs(one)
			if err == nil {
				path, err = filepath.EvalSymlinks(path)
			}
			info, statErr := os.Stat(path)
			if err = errors.Join(err, statErr); err != nil || !info.Mode().IsRegular() {
				return nil, nil, fault.New(fault.NotFound, "cannot install %q: there is no such file", one).WithHint("ls -l %s", one)
			}
			files = append(files, path)
			continue
		}
		if !config.IsPackage(one) {
			return nil, nil, fault.New(fault.Invalid, "cannot install %q: that is not a package name", one).WithHint("litterbox install %s ripgrep", name)
		}
		packages = append(packages, one)
	}
	return packages, files, nil
}

func isPackageFile(name string) bool { return packageFile(name) != "" }

// canInstall says why a sandbox cannot have packages of its own.
func (p *place) canInstall() error {
	why := ""
	packager, ok := p.driver.(driver.Packager)
	switch {
	case !ok || !packager.Packages():
		why = "the driver " + p.record.Driver + " has none"
	case p.record.Live != nil:
		why = "a live environment has the system directories of this machine"
	case p.copied() || p.far():
		why = "they need an overlay, and its files are a copy"
	}
	if why == "" {
		return nil
	}
	return fault.New(fault.Unsupported, "cannot install packages in sandbox %q: %s", p.record.Name, why).
		WithHint(`container.base-image, an image that has them`)
}

// system says on which packages of its own a sandbox stands; nil if there is none.
func (e *Engine) system(p *place) (*driver.System, error) {
	r, err := frozen.Read(p.dir)
	if err != nil {
		return nil, err
	}
	switch name := frozen.LayersOf(p.dir, r.Stack).Foundation(); name {
	case "":
		return nil, nil
	case imageFoundation:
		return &driver.System{}, nil
	default:
		dir := filepath.Join(e.userlands(p).Dir, name)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fault.New(fault.NotFound, "cannot start sandbox %q: its packages are installed on top of %q, which is gone", p.record.Name, dir).
				WithHint("litterbox restore %s", p.record.Name)
		}
		return &driver.System{Foundation: dir}, nil
	}
}

// imageFoundation stands for an image's own packages.
var imageFoundation = filepath.Base("")

// installs reports whether a new sandbox is to have packages that no golden
// brings.
func (p *place) installs() bool { return len(p.config.Container.Packages) > 0 && p.golden == nil }

// installConfigured installs container.packages.
func (e *Engine) installConfigured(ctx context.Context, p *place, output io.Writer) error {
	if !p.installs() {
		return nil
	}
	all := slices.Clone(p.config.Container.Packages)
	packages, _, err := namedPackages(p.record.Name, all)
	if err != nil {
		return err
	}
	if b := p.building; b != nil {
		b.output.title(fromPackages, strings.Join(all, " "))
		output = b.output
	}
	return e.install(ctx, p, installation{packages: packages, output: output})
}
