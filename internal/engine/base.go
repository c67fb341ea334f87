package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/image"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// chooseBase finds what a new sandbox's root file system is made of; nil is
// the host's own userland. An image that is not there yet is brought.
func (e *Engine) chooseBase(ctx context.Context, c config.Config, top string, d driver.Driver, pull bool) (*sandbox.Image, error) {
	if imager, has := d.(driver.Imager); has {
		return e.engineImage(ctx, imager, driver.Wanted{Reference: c.Container.BaseImage, Pull: pull, Runtime: c.Container.Runtime})
	}
	own := d.Ownership("")
	if c.Container.BaseImage == "" {
		return nil, nil
	}
	source, err := image.Parse(c.Container.BaseImage)
	if err != nil || source.Kind == image.Host {
		return nil, err
	}
	if source, err = source.Locate(top, callerOf(ctx).Home); err != nil {
		return nil, err
	}
	if name := c.Container.BaseImage; source.Kind == image.Registry && !strings.ContainsAny(name, ":@") {
		if info, err := os.Stat(filepath.Join(top, name)); err == nil && info.IsDir() {
			return nil, fault.New(fault.Invalid, "cannot use the base image %q: it could be the directory of the repository or %s", name, source).
				WithHint(`container.base-image = "./%s", or "%s"`, name, source)
		}
	}
	if source.Kind != image.Directory {
		found, err := e.images(own).Image(ctx, source, pull)
		return &found, err
	}
	if err := e.checkBase(ctx, source.Path, top); err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(source.Path)
	return &sandbox.Image{Reference: source.String(), Directory: real}, err
}

// engineImage finds the image of a driver that has an engine of its own.
func (e *Engine) engineImage(ctx context.Context, imager driver.Imager, wanted driver.Wanted) (*sandbox.Image, error) {
	if name := wanted.Reference; name != "" {
		source, err := image.Parse(name)
		if err != nil {
			return nil, err
		}
		if source.Kind != image.Registry && source.Kind != image.Host {
			return nil, fault.Wrap("", driver.ErrUnsupported, "cannot use the base image %q: an engine takes images by their names", name).
				WithHint(`container.base-image = "debian:bookworm"`)
		}
		if source.Kind == image.Host {
			wanted.Reference = ""
		}
	}
	found, err := imager.Image(ctx, wanted, e.Progress)
	return &found, err
}

// runtimeless says that a runtime was chosen and the driver has none.
func runtimeless(d driver.Driver, c config.Config) []string {
	if _, has := d.(driver.Imager); has || c.Container.Runtime == "" {
		return nil
	}
	return []string{"container.runtime is for the drivers docker and podman: this sandbox has the driver " + d.Name()}
}

func (e *Engine) images(own driver.Ownership) image.Store {
	return image.Store{
		Dir:      filepath.Join(e.Store.Root, "images"),
		Owner:    image.Owner{UID: own.UID, GID: own.GID, Chown: own.ChownLayers},
		Progress: e.Progress,
	}
}

// checkBase refuses a directory in which a sandbox would see what it must not.
func (e *Engine) checkBase(ctx context.Context, dir, top string) error {
	hidden := []string{e.Store.Shared(), top}
	if home := callerOf(ctx).Home; home != "" {
		hidden = append(hidden, home)
	}
	return image.CheckDirectory(dir, hidden...)
}

// addBase puts the sandbox's image into its specification: layers,
// environment, user.
func (e *Engine) addBase(ctx context.Context, p *place, own driver.Ownership, spec *driver.Spec) error {
	made := p.record.Image
	if made.Engine != "" {
		spec.Base = &driver.Base{Image: made.Digest, Engine: made.Engine, Shown: made.Reference, Runtime: made.Runtime}
	} else if made.Directory != "" {
		if err := e.checkBase(ctx, made.Directory, p.record.Repository); err != nil {
			return err
		}
		spec.Base = &driver.Base{Layers: []string{made.Directory}}
	} else {
		layers, err := e.images(own).Layers(ctx, *made)
		if err != nil {
			return err
		}
		spec.Base = &driver.Base{Layers: layers, Owned: true, UID: own.UID, GID: own.GID, WorkingDir: made.WorkingDir}
	}
	if isUserName(made.User) {
		spec.User.Name = made.User
	}
	spec.User.Shell = shellOf(spec.Base.Layers, spec.User.Shell)
	return nil
}

// isUserName reports whether an image's user is one whose name the inner user can
// take: not a number, and not root, which no user inside is.
func isUserName(name string) bool {
	allowed := func(r rune) bool {
		return r == '_' || r == '-' || r == '.' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return name != "" && name != "root" && len(name) <= 32 && !strings.ContainsFunc(name, func(r rune) bool { return !allowed(r) }) &&
		strings.Trim(name, "0123456789") != "" && name[0] != '-'
}

// shellOf is the user's shell where the image has it, or one that it has.
func shellOf(layers []string, mine string) string {
	for _, shell := range []string{mine, "/bin/" + filepath.Base(mine), "/bin/bash"} {
		if image.Has(layers, shell) {
			return shell
		}
	}
	return "/bin/sh"
}

// ours are variables that the sandbox's own user decides, not an image.
var ours = []string{"HOME", "USER", "LOGNAME", "SHELL", "LITTERBOX"}

// baseEnv is the environment of an image's programs.
func baseEnv(made *sandbox.Image, home string) map[string]string {
	env := map[string]string{"PATH": strings.Join(systemSearch, ":"), "LANG": "C.UTF-8"}
	for _, entry := range made.Env {
		if key, value, ok := strings.Cut(entry, "="); ok && !slices.Contains(ours, key) {
			env[key] = value
		}
	}
	env["PATH"] += ":" + filepath.Join(home, ".local/bin")
	return env
}

// planImages lists the layers of images that no sandbox of any repository has.
func (e *Engine) planImages(now time.Time) ([]Pruned, error) {
	layers, err := e.imageLayers()
	if err != nil {
		return nil, err
	}
	var plan []Pruned
	for _, layer := range layers {
		if layer.used {
			continue
		}
		one := Pruned{Kind: "image", Name: filepath.Base(layer.Dir), Bytes: inodes{}.size(layer.Dir), Why: "no sandbox uses it", image: layer.Unpacked}
		if layer.Partial {
			one.Why = "it was never finished"
		}
		if age := now.Sub(layer.Used); age < cacheRest {
			one.Kept = "it was used " + age.Round(time.Second).String() + " ago"
		}
		plan = append(plan, one)
	}
	return plan, nil
}

// imageLayer is an unpacked layer of an image.
type imageLayer struct {
	image.Unpacked
	used bool // some sandbox was made with it
}

func (e *Engine) imageLayers() ([]imageLayer, error) {
	unpacked, err := e.images(driver.Ownership{}).Unpacked()
	if err != nil || len(unpacked) == 0 {
		return nil, err
	}
	records, unreadable, err := e.Store.Sandboxes()
	if err != nil {
		return nil, err
	}
	layers := make([]imageLayer, len(unpacked))
	for n, layer := range unpacked {
		layers[n].Unpacked = layer
		layers[n].used = len(unreadable) > 0 // perhaps by one with an unreadable record
		for _, record := range records {
			if record.Image != nil && e.Drivers.Get(record.Driver) != nil {
				own := e.Drivers.Get(record.Driver).Ownership(record.ID)
				layers[n].used = layers[n].used || e.images(own).Uses(*record.Image, layer)
			}
		}
	}
	return layers, nil
}
