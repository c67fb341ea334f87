package child

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
)

// Machines adds, tries and removes the human's machines.
type Machines struct{ Store machine.Store }

// machineDriver returns the driver of the places in one of them, or nil when
// there is no such machine.
func machineDriver(root, name string) driver.Driver {
	m, err := machine.In(root).Get(name)
	if err != nil || m.Kind != machine.SSH {
		return nil
	}
	far := host(m)
	far.State = root
	return remote.NewSSH(driver.OnMachine(name), far)
}

func host(m machine.Machine) *remote.SSH {
	return &remote.SSH{Machine: m, Env: caller.ThisProcess().Env, Program: outpostOf}
}

// outpostOf returns the program of outposts that this one carries.
func outpostOf(system, architecture string) (remote.Program, error) {
	program, err := payload.Outpost(system, architecture)
	return remote.Program(program), err
}

// Lent returns variables that ssh needs and that a keeper does not have otherwise:
// the socket of the ssh-agent. Processes in a sandbox have none of them.
func Lent(get func(string) string) []string {
	var env []string
	for _, name := range []string{"SSH_AUTH_SOCK", "SSH_ASKPASS", "KRB5CCNAME"} {
		if value := get(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// All implements engine.Machines.
func (m Machines) All() ([]machine.Machine, error) {
	var all []machine.Machine
	for _, name := range m.Store.Names() {
		one, err := m.Store.Get(name)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Add implements engine.Machines.
func (m Machines) Add(ctx context.Context, wanted machine.Machine) (machine.Machine, error) {
	switch _, err := m.Store.Get(wanted.Name); {
	case err == nil:
		return wanted, machine.Exists(wanted.Name)
	case fault.KindOf(err) != fault.NotFound:
		return wanted, err
	}
	id := make([]byte, 6)
	_, _ = rand.Read(id) // never fails, crypto/rand
	wanted.ID, wanted.AddedAt = hex.EncodeToString(id), time.Now().UTC().Truncate(time.Second)
	found, err := host(wanted).Look(ctx)
	if err != nil {
		return wanted, err
	}
	// The outpost is installed and answers, or nothing stays there.
	if _, err = remote.NewSSH(driver.OnMachine(found.Name), host(found)).Status(ctx); err == nil {
		err = m.Store.Save(found, true)
	}
	if err != nil {
		return found, errors.Join(err, host(found).Clear(context.WithoutCancel(ctx)))
	}
	return found, nil
}

// Status implements engine.Machines.
func (m Machines) Status(ctx context.Context, name string) (machine.Status, error) {
	found, err := m.Store.Get(name)
	if err != nil {
		return machine.Status{}, err
	}
	return remote.NewSSH(driver.OnMachine(name), host(found)).Status(ctx)
}

// Remove implements engine.Machines.
func (m Machines) Remove(ctx context.Context, name string, forget bool) error {
	found, err := m.Store.Get(name)
	if err != nil {
		return err
	}
	if !forget {
		if err := m.clear(ctx, found); err != nil {
			return err
		}
	}
	return m.Store.Remove(name)
}

func (m Machines) clear(ctx context.Context, found machine.Machine) error {
	places, err := remote.NewSSH(driver.OnMachine(found.Name), host(found)).Places(ctx)
	if errors.Is(err, driver.ErrMachineLost) {
		return nil // nothing of it is there
	}
	if err != nil {
		return err
	}
	if len(places) > 0 {
		return fault.New(fault.Conflict, "cannot remove the machine %q: it holds files of %d sandboxes that are not known here, such as %s", found.Name, len(places), places[0]).
			WithHint("litterbox machine remove %s --forget  # leaves %s there as it is", found.Name, found.Dir)
	}
	return host(found).Clear(ctx)
}
