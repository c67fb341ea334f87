package lima

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// VM is the machine as a human starts, stops and inspects it.
type VM struct{ Machine }

// Driver is the name of the driver whose sandboxes are in it.
func (VM) Driver() string { return Name }

// Single is the name of the driver of virtual machines for one sandbox each.
func (VM) Single() string { return OwnName }

// StartSingle is [Machine.Bring] for the machine of a sandbox.
func (v VM) StartSingle(ctx context.Context, stateDir string, note func(string)) error {
	return Own(stateDir, v.options).Bring(ctx, note)
}

// Singles reports the states of the machines of single sandboxes, of the golden and of
// the one of live environments, without starting any. Sandbox is the id.
func (v VM) Singles(ctx context.Context) ([]machine.VM, error) {
	root := filepath.Dir(filepath.Dir(filepath.Dir(v.dir)))
	all, err := recorded(root, v.options)
	var found []machine.VM
	if env := EnvAt(root, v.options); err == nil {
		if _, made := os.Stat(env.dir); made == nil {
			vm, err := VM{env}.Status(ctx)
			if err != nil {
				return nil, err
			}
			vm.Driver = EnvName
			found = append(found, vm)
		}
	}
	for _, m := range all {
		vm, err := VM{m}.Status(ctx)
		if err != nil {
			return nil, err
		}
		vm.Driver, vm.Sandbox, vm.Changed = OwnName, m.id, false
		found = append(found, vm)
	}
	return found, err
}

// Start is [Machine.Bring].
func (v VM) Start(ctx context.Context, note func(string)) error { return v.Bring(ctx, note) }

// Status reports the machine's state, without starting it.
func (v VM) Status(ctx context.Context) (machine.VM, error) {
	vm := machine.VM{Name: v.instance, Driver: Name, State: machine.VMMissing}
	one, err := v.limactl(nil).Find(ctx, v.instance)
	if errors.Is(err, limactl.ErrNoInstance) {
		return vm, nil
	}
	if err != nil {
		return vm, err
	}
	vm.State, vm.Type, vm.Architecture, vm.Version, vm.Dir = strings.ToLower(string(one.Status)), one.VMType, one.Arch, one.LimaVersion, one.Dir
	vm.CPUs, vm.Memory, vm.Disk, vm.Trouble = one.CPUs, one.Memory, one.Disk, strings.Join(one.Errors, "; ")
	if err := v.apart(one); err != nil {
		vm.Trouble = err.Error()
	}
	wanted, err := v.settings()
	if err != nil {
		return vm, err
	}
	made, err := v.made()
	vm.Changed = err == nil && made != wanted
	return vm, nil
}

// Logs lists the files of Lima's logs of the machine.
func (v VM) Logs(ctx context.Context) ([]string, error) {
	one, err := v.limactl(nil).Find(ctx, v.instance)
	if err != nil {
		return nil, err
	}
	var logs []string
	for _, pattern := range []string{"ha.stderr.log", "serial*.log"} {
		found, err := filepath.Glob(filepath.Join(one.Dir, pattern))
		if err != nil {
			return nil, err
		}
		logs = append(logs, found...)
	}
	if len(logs) == 0 {
		return nil, fault.New(fault.NotFound, "the virtual machine %q has no logs: it was not started yet", v.instance).WithHint("litterbox machine start")
	}
	return logs, nil
}

// Shell is limactl's, as the user of the machine, who may become root there.
func (v VM) Shell(_ context.Context, argv []string) (command, env []string, err error) {
	path, err := v.limactl(nil).Path()
	if err != nil {
		return nil, nil, err
	}
	return append([]string{path, "shell", "--workdir=/", v.instance}, argv...), v.options.Env, nil
}

// madeFile holds the settings the machine was made with, or was given since.
const madeFile = "made.json"

func (m Machine) made() (machine.VMSettings, error) {
	var s machine.VMSettings
	data, err := os.ReadFile(filepath.Join(m.dir, madeFile))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, err
}

func (m Machine) remember(s machine.VMSettings) error {
	data, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(filepath.Join(m.dir, madeFile), data, 0o600)
	}
	if err != nil {
		return driver.Seal(err, "cannot remember what the virtual machine was made with")
	}
	return nil
}

// adjust gives a stopped machine the processors and the memory of its present
// configuration. The rest applies when it is made again.
func (m Machine) adjust(ctx context.Context, client limactl.Client) error {
	wanted, err := m.settings()
	if err != nil {
		return err
	}
	made, err := m.made()
	if err != nil || made.CPUs == wanted.CPUs && made.Memory == wanted.Memory {
		return nil // another program made it, without such a record
	}
	cpus, memory := wanted.CPUs, wanted.Memory
	if cpus == 0 {
		cpus = DefaultCPUs
	}
	if memory == "" {
		memory = DefaultMemory
	}
	if err := client.Edit(ctx, m.instance, ".cpus = "+strconv.Itoa(cpus), ".memory = "+strconv.Quote(memory)); err != nil {
		return m.sealed(err)
	}
	made.CPUs, made.Memory = wanted.CPUs, wanted.Memory
	return m.remember(made)
}
