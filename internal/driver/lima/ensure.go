package lima

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// settingsFile holds what the machine was configured with, for processes that do
// not read the human's configuration.
const settingsFile = "settings.json"

// Configure sets what the machine is given when it is next made. It changes
// nothing in an existing one.
func (m Machine) Configure(s machine.VMSettings) error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return driver.Seal(err, "cannot make the directory of the virtual machine")
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := filepath.Join(m.dir, settingsFile)
	if before, err := os.ReadFile(path); err == nil && string(before) == string(data) {
		return nil
	}
	temp, err := os.CreateTemp(m.dir, "."+settingsFile)
	if err != nil {
		return driver.Seal(err, "cannot write the settings of the virtual machine")
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return driver.Seal(errors.Join(err, os.Remove(temp.Name())), "cannot write the settings of the virtual machine")
	}
	return nil
}

// settings returns those of Configure, or none. All instances have those of the
// shared one.
func (m Machine) settings() (machine.VMSettings, error) {
	var s machine.VMSettings
	data, err := os.ReadFile(filepath.Join(filepath.Dir(m.dir), Instance, settingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return s, fault.Wrap(fault.Internal, err, "cannot read the settings of the virtual machine")
	}
	return s, nil
}

// Ensure implements remote.Machine.
func (m Machine) Ensure(ctx context.Context) error { return m.Bring(ctx, nil) }

// Bring makes the machine if there is none, starts it if it does not run, and
// repairs it if Lima calls it broken. note is told what is under way.
func (m Machine) Bring(ctx context.Context, note func(string)) error {
	if _, err := m.limactl(note).Path(); err != nil {
		return m.sealed(err) // before there is a directory of the machine
	}
	return m.locked(ctx, func() error { return m.bring(ctx, note) })
}

func (m Machine) bring(ctx context.Context, note func(string)) error {
	client := m.limactl(note)
	if err := m.dropHalf(ctx, client); err != nil {
		return err
	}
	one, err := client.Find(ctx, m.instance)
	if errors.Is(err, limactl.ErrNoInstance) {
		make := m.create
		if m.golden != nil {
			make = m.copyGolden
		}
		if err := make(ctx, client); err != nil {
			return err
		}
		one, err = client.Find(ctx, m.instance)
	}
	if err != nil {
		return m.sealed(err)
	}
	return m.up(ctx, client, one)
}

// create makes the instance and leaves it stopped.
func (m Machine) create(ctx context.Context, client limactl.Client) error {
	s, err := m.settings()
	if err != nil {
		return err
	}
	return m.createWith(ctx, client, s)
}

func (m Machine) createWith(ctx context.Context, client limactl.Client, s machine.VMSettings) error {
	template, err := m.template(s)
	if err != nil {
		return err
	}
	if err := client.Validate(ctx, template); err != nil {
		return m.sealed(err)
	}
	if err := client.Create(ctx, m.instance, template); err != nil {
		return m.sealed(err)
	}
	return m.remember(s)
}

// up starts an existing instance.
func (m Machine) up(ctx context.Context, client limactl.Client, one limactl.Instance) error {
	var err error
	if one.Status == limactl.Broken {
		// A killed host agent, or a killed hypervisor: the other half ends, and the
		// disk stays.
		if err := client.Stop(ctx, m.instance, true); err != nil {
			return m.broken(one, err)
		}
		if one, err = client.Find(ctx, m.instance); err != nil {
			return m.sealed(err)
		}
	}
	if err := m.apart(one); err != nil {
		return err
	}
	switch one.Status {
	case limactl.Running:
		return m.mounted(ctx, client)
	case limactl.Stopped, limactl.Uninitialized, limactl.Installing:
		if err := m.adjust(ctx, client); err != nil {
			return err
		}
	default:
		return m.broken(one, nil)
	}
	if err := client.Start(ctx, m.instance, bootPatience); err != nil {
		return m.sealed(err)
	}
	return m.mounted(ctx, client)
}

// broken says that the machine needs a decision: its contents would be lost.
func (m Machine) broken(one limactl.Instance, err error) error {
	said := string(one.Status)
	if len(one.Errors) > 0 {
		said += ": " + one.Errors[0]
	}
	if err != nil {
		said += "; " + err.Error()
	}
	hint := "litterbox machine recreate  # what it holds is lost; commits are here"
	if m.golden != nil {
		hint = "limactl start --debug " + m.instance
	}
	return fault.Wrap("", driver.Joined(driver.ErrUnreachable, errors.New(said)), "cannot start the virtual machine %q", m.instance).WithHint("%s", hint)
}

// Wake starts the machine if it is stopped. It does not make a missing one: it
// fails with driver.ErrMachineLost.
func (m Machine) Wake(ctx context.Context) error {
	return m.locked(ctx, func() error {
		client := m.limactl(nil)
		one, err := client.Find(ctx, m.instance)
		if err != nil {
			return m.sealed(err)
		}
		return m.up(ctx, client, one)
	})
}

// Stop shuts the machine down; the places in it end. It is no error if the
// machine does not run.
func (m Machine) Stop(ctx context.Context, note func(string)) error {
	return m.locked(ctx, func() error {
		client := m.limactl(note)
		one, err := client.Find(ctx, m.instance)
		if err != nil {
			return err
		}
		if one.Status == limactl.Stopped || one.Status == limactl.Uninitialized {
			return nil
		}
		return m.halt(ctx, client)
	})
}

// halt shuts a running instance down, and cuts off one that does not end.
func (m Machine) halt(ctx context.Context, client limactl.Client) error {
	patient, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	err := client.Stop(patient, m.instance, false)
	if err != nil && ctx.Err() == nil {
		return m.sealed(client.Stop(ctx, m.instance, true))
	}
	return err
}

// Recreate makes the machine again, from its present configuration. Everything in
// it is lost; the caller has asked for consent.
func (m Machine) Recreate(ctx context.Context, note func(string)) error {
	return m.locked(ctx, func() error {
		client := m.limactl(note)
		// Find what would refuse the new one before the old one goes.
		s, err := m.settings()
		if err != nil {
			return err
		}
		template, err := m.template(s)
		if err != nil {
			return err
		}
		if err := client.Validate(ctx, template); err != nil {
			return err
		}
		if err := client.Delete(ctx, m.instance); err != nil {
			return err
		}
		return m.bring(ctx, note)
	})
}

// locked runs do while no other process changes the machine.
func (m Machine) locked(ctx context.Context, do func() error) error {
	if m.dir == "" {
		return do()
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return driver.Seal(err, "cannot make the directory of the virtual machine")
	}
	f, err := os.OpenFile(filepath.Join(m.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return driver.Seal(err, "cannot lock the virtual machine")
	}
	defer f.Close()
	if err := lock.File(ctx, f); err != nil {
		return err
	}
	return do()
}

// sealed turns limactl's errors into those that drivers may return.
func (m Machine) sealed(err error) error {
	for _, one := range []struct{ of, as *fault.Error }{
		{limactl.ErrNoInstance, driver.ErrMachineLost},
		{limactl.ErrDiskFull, driver.ErrDiskFull},
		{limactl.ErrRoot, driver.ErrUnsupported},
		{limactl.ErrTooOld, driver.ErrUnsupported},
	} {
		if errors.Is(err, one.of) {
			return fault.Wrap("", driver.Joined(one.as, err), "cannot use the virtual machine %q", m.instance).WithHint("%s", fault.HintOf(err))
		}
	}
	return err
}
