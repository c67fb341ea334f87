package lima

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// OwnName is the driver of places in virtual machines of their own.
const OwnName = "lima-vm"

// Golden is the instance that those machines are copies of. It has booted once, so
// that its system is set up, and is stopped.
const Golden = "litterbox-golden"

// ownIdle is how long a machine of one sandbox runs without it, unless vm.idle-stop
// says otherwise: diff and commit of a stopped sandbox start its machine.
const ownIdle = 10 * time.Minute

// The files of a machine of one sandbox, in its directory here.
const (
	sandboxFile = "sandbox" // whose it is; written before the instance is there
	copyingFile = "copying" // while it is copied; a copy that has one is not whole
)

// finishedFile is in Lima's directory of a golden, and has the sum of what it was
// made with. It is written last.
const finishedFile = "litterbox-golden"

// Own is the virtual machine of one sandbox, by its state directory.
func Own(stateDir string, o Options) Machine {
	id := filepath.Base(stateDir)
	machines := machinesDir(driver.Root(stateDir))
	golden := Machine{options: o, instance: Golden, dir: filepath.Join(machines, Golden)}
	instance := instanceOf(id)
	return Machine{options: o, instance: instance, dir: filepath.Join(machines, instance), golden: &golden, id: id}
}

// instanceOf is the name of a sandbox's instance. Sockets lie below a directory of
// that name, and their paths have at most 104 bytes on a Mac.
func instanceOf(id string) string {
	const most = 30
	if len(id) > most { // it ends in random letters
		id = id[:most-9] + id[len(id)-9:]
	}
	return "litterbox-" + id
}

// copyGolden makes the instance as a copy of the golden, and leaves it stopped.
func (m Machine) copyGolden(ctx context.Context, client limactl.Client) error {
	if err := m.mark(sandboxFile, m.id); err != nil {
		return err
	}
	return m.golden.locked(ctx, func() error {
		if err := m.golden.finish(ctx, client); err != nil {
			return err
		}
		if err := m.mark(copyingFile, ""); err != nil {
			return err
		}
		if err := client.Clone(ctx, Golden, m.instance); err != nil {
			return errors.Join(m.sealed(err), m.dropHalf(context.WithoutCancel(ctx), client))
		}
		if made, err := m.golden.made(); err == nil {
			if err := m.remember(made); err != nil {
				return err
			}
		}
		return m.whole()
	})
}

// mark writes a file of the machine's directory here.
func (m Machine) mark(name, text string) error {
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
		return driver.Seal(err, "cannot record the virtual machine of the sandbox")
	}
	return nil
}

// whole records that the copy is complete.
func (m Machine) whole() error {
	if err := os.Remove(filepath.Join(m.dir, copyingFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return driver.Seal(err, "cannot record the virtual machine of the sandbox")
	}
	return nil
}

// dropHalf removes a copy that was cut off. Nothing has run in it.
func (m Machine) dropHalf(ctx context.Context, client limactl.Client) error {
	if m.golden == nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(m.dir, copyingFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := client.Delete(ctx, m.instance); err != nil {
		return m.sealed(err)
	}
	return m.whole()
}

// finish makes the golden, unless it is there and what it was made with is what it
// would be made with now. Nothing of a sandbox is ever in it.
func (m Machine) finish(ctx context.Context, client limactl.Client) error {
	s, err := m.settings()
	if err != nil {
		return err
	}
	if s.IdleStop <= 0 {
		s.IdleStop = ownIdle
	}
	sum, err := m.sum(s)
	if err != nil {
		return err
	}
	one, err := client.Find(ctx, Golden)
	if err == nil {
		if had, err := os.ReadFile(filepath.Join(one.Dir, finishedFile)); err == nil && string(had) == sum {
			return m.rest(ctx, client, one)
		}
		err = client.Delete(ctx, Golden)
	}
	if err != nil && !errors.Is(err, limactl.ErrNoInstance) {
		return m.sealed(err)
	}
	if err := m.createWith(ctx, client, s); err != nil {
		return err
	}
	if one, err = client.Find(ctx, Golden); err != nil {
		return m.sealed(err)
	}
	if err := m.firstBoot(ctx, client, one); err != nil {
		// It stays for its logs, and does not go on in the background.
		return errors.Join(err, client.Stop(context.WithoutCancel(ctx), Golden, true))
	}
	if err := os.WriteFile(filepath.Join(one.Dir, finishedFile), []byte(sum), 0o600); err != nil {
		return driver.Seal(err, "cannot record the golden virtual machine")
	}
	return nil
}

// firstBoot starts a new golden, and stops it when its outpost has answered. Its copies
// have the outpost then.
func (m Machine) firstBoot(ctx context.Context, client limactl.Client, one limactl.Instance) error {
	if err := m.up(ctx, client, one); err != nil {
		return err
	}
	conn, err := m.through(ctx, one.Dir)
	if err != nil {
		return err
	}
	_ = conn.Close() // nothing was asked
	return m.halt(ctx, client)
}

// rest stops a golden that a human has started.
func (m Machine) rest(ctx context.Context, client limactl.Client, one limactl.Instance) error {
	if err := m.apart(one); err != nil {
		return err
	}
	if one.Status == limactl.Stopped {
		return nil
	}
	return m.halt(ctx, client)
}

// sum identifies what a golden is made with: all but what a copy can be given later.
func (m Machine) sum(s machine.VMSettings) (string, error) {
	s.CPUs, s.Memory = 0, ""
	override, err := os.ReadFile(m.options.Override)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read the configuration of the virtual machine")
	}
	data, err := json.Marshal([]any{m.walls(s, nil), defaults(s), override})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// remove deletes the instance, and what is known about it here.
func (m Machine) remove(ctx context.Context) error {
	if _, err := os.Stat(m.dir); errors.Is(err, fs.ErrNotExist) {
		return nil // it was never made
	}
	return m.locked(ctx, func() error {
		if err := m.limactl(nil).Delete(ctx, m.instance); err != nil {
			return m.sealed(err)
		}
		if err := os.RemoveAll(m.dir); err != nil {
			return driver.Seal(err, "cannot forget the virtual machine of the sandbox")
		}
		return nil
	})
}
