package lima

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// recorded lists the golden and the machines of single sandboxes of a state
// directory, by their records here. Lima is not asked.
func recorded(root string, o Options) ([]Machine, error) {
	entries, err := os.ReadDir(machinesDir(root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot list the virtual machines of sandboxes")
	}
	var all []Machine
	for _, entry := range entries {
		name := entry.Name()
		dir := filepath.Join(machinesDir(root), name)
		id, err := os.ReadFile(filepath.Join(dir, sandboxFile))
		switch {
		case name == Golden:
			all = append(all, Machine{options: o, instance: Golden, dir: dir})
		case err == nil && name == instanceOf(string(id)):
			all = append(all, Own(filepath.Join(root, "sandboxes", string(id)), o))
		}
	}
	return all, nil
}

// Strays implements driver.StrayFinder.
func (d *OwnDriver) Strays(root string, known func(sandboxID string) bool) ([]driver.Stray, error) {
	all, err := recorded(root, d.options)
	var strays []driver.Stray
	for _, m := range all {
		if m.id == "" || known(m.id) {
			continue
		}
		strays = append(strays, driver.Stray{SandboxID: m.id, Kind: "a virtual machine", What: "limactl delete " + m.instance,
			End: func() error { return m.remove(context.Background()) }})
	}
	return strays, err
}

// Made implements driver.Maker. The golden is listed with the sandboxes that have a
// copy of it.
func (d *OwnDriver) Made(ctx context.Context, root string) ([]driver.Made, error) {
	all, err := recorded(root, d.options)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	instances, err := limactl.Client{Env: d.options.Env}.List(ctx)
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	var made []driver.Made
	var ids []string
	for _, m := range all {
		one := driver.Made{Name: m.instance, Kind: "virtual machine", Engine: Name, Bytes: -1, Trouble: trouble}
		for _, instance := range instances {
			if instance.Name == m.instance {
				one.Running, one.Bytes = instance.Status == limactl.Running, taken(instance.Dir)
			}
		}
		if m.id != "" {
			if kept, err := driver.Kept(root, m.id); kept || err != nil {
				one.Sandboxes = []string{m.id}
				ids = append(ids, m.id)
			}
		}
		made = append(made, one)
	}
	for i := range made {
		if made[i].Name == Golden {
			made[i].Sandboxes = ids
		}
	}
	return made, nil
}

// Unmake implements driver.Maker.
func (d *OwnDriver) Unmake(ctx context.Context, root, name string) error {
	all, err := d.Made(ctx, root)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Name == name && len(one.Sandboxes) > 0 {
			return fault.New(fault.Conflict, "cannot remove the virtual machine %q: it is of the sandboxes %s", name, strings.Join(one.Sandboxes, ", "))
		}
	}
	machines, err := recorded(root, d.options)
	for _, m := range machines {
		if m.instance == name {
			err = m.remove(ctx)
		}
	}
	return err
}

// taken is how much of the disk an instance takes, in bytes. A copy may share blocks
// with the golden, which count for both.
func taken(dir string) int64 { return hostile.Counted{}.Size(dir) }
