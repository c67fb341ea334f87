package redteam

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
)

// tier is how to request a driver.
type tier struct {
	name string
	env  []string // makes the program use it
	args []string // of create
	// lends are variables of the user that say where an engine or an agent is.
	lends []string
	// far says that its sandboxes have their files in another machine, and maker that
	// this is a container, which stays when they are gone.
	far, maker bool
}

func tiers() []tier {
	docker := []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "XDG_RUNTIME_DIR"}
	return []tier{
		{name: "namespace"},
		{name: "landlock", env: []string{"LITTERBOX_TIER=degraded"}, args: []string{"--allow-degraded"}},
		{name: "docker", args: []string{"--driver", "docker"}, lends: docker, far: true, maker: true},
		{name: "podman", args: []string{"--driver", "podman"}, lends: []string{"CONTAINER_HOST", "XDG_RUNTIME_DIR"}, far: true, maker: true},
	}
}

// Drivers lists the drivers that can be attacked, the default one first.
func Drivers() []string {
	var names []string
	for _, t := range tiers() {
		names = append(names, t.name)
	}
	return names
}

// Machine is a host that ssh reaches.
type Machine struct {
	Name, Address, Identity string
	Driver                  string // of its sandboxes
}

// chosen is the tier that is asked for; false if there is none.
func (o Options) chosen() (tier, bool) {
	if o.Machine != nil {
		return tier{name: o.Machine.Driver, args: []string{"--machine", o.Machine.Name}, lends: []string{"SSH_AUTH_SOCK"}, far: true}, true
	}
	all := tiers()
	at := slices.IndexFunc(all, func(t tier) bool { return t.name == cmp.Or(o.Driver, all[0].name) })
	if at < 0 {
		return tier{}, false
	}
	return all[at], true
}

// lend returns the environment of a tier.
func (t tier) lend(get func(string) string) []string {
	env := slices.Clone(t.env)
	for _, name := range t.lends {
		value := get(name)
		if name == "DOCKER_CONFIG" && value == "" && get("HOME") != "" {
			value = filepath.Join(get("HOME"), ".docker") // contexts; the home of the attacks is another
		}
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// reach makes the machine, or the image of containers, known below the home of the
// attacks.
func (w *world) reach(ctx context.Context, o Options) error {
	if o.BaseImage != "" {
		file := filepath.Join(w.home, ".config/litterbox/config.toml")
		if err := put(file, "[container]\nbase-image = "+strconv.Quote(o.BaseImage)+"\n"); err != nil {
			return err
		}
	}
	if o.Machine == nil {
		return nil
	}
	args := []string{"machine", "add", o.Machine.Name, o.Machine.Address}
	if o.Machine.Identity != "" {
		args = append(args, "--identity", o.Machine.Identity)
	}
	if got := w.litterbox(ctx, args...); got.code != 0 {
		return errors.New(got.said())
	}
	return nil
}

// unmake removes the containers of sandboxes that are gone. A machine stays as it is:
// the user's own sandboxes may be on it.
func (w *world) unmake(ctx context.Context) error {
	if !w.tier.maker {
		return nil
	}
	if got := w.litterbox(ctx, "prune", "--all", "--yes"); got.code != 0 {
		return errors.New(got.said())
	}
	return nil
}
