package libvirt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// Wake starts a domain that is off, so that its files can be read.
func (m Machine) Wake(ctx context.Context) error {
	return m.locked(ctx, func() error {
		h, err := readHandle(m.StateDir)
		if err != nil {
			return err
		}
		answer, err := m.ask(ctx, h, OpState)
		if err != nil {
			return err
		}
		if answer.State == Lost {
			if _, err := os.Stat(h.disk()); err != nil {
				return driver.ErrMachineLost
			}
		}
		return m.start(ctx, h)
	})
}

// Pause stops every processor of the domain. The pause is recorded beside its
// disk, so that no process waits for an answer from it.
func (m Machine) Pause(ctx context.Context, reason string) error {
	h, err := readHandle(m.StateDir)
	if err != nil {
		return err
	}
	if _, err := m.ask(ctx, h, OpSuspend); err != nil {
		return err
	}
	if err := os.WriteFile(m.mark(h), []byte(reason+"\n"), 0o600); err != nil {
		_, resumed := m.ask(context.WithoutCancel(ctx), h, OpResume)
		return errors.Join(driver.Seal(err, "cannot note that the domain is paused"), resumed)
	}
	return nil
}

// Resume lets the domain go on.
func (m Machine) Resume(ctx context.Context) error {
	h, err := readHandle(m.StateDir)
	if err != nil {
		return err
	}
	if _, err := m.ask(ctx, h, OpResume); err != nil {
		return err
	}
	return m.unmark(h)
}

// Paused reports whether Pause holds the domain.
func (m Machine) Paused() bool {
	h, err := readHandle(m.StateDir)
	if err != nil {
		return false
	}
	_, err = os.Stat(m.mark(h))
	return err == nil
}

func (m Machine) mark(h handle) string { return filepath.Join(h.Dir, "paused") }

func (m Machine) unmark(h handle) error {
	if err := os.Remove(m.mark(h)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return driver.Seal(err, "cannot note that the domain runs")
	}
	return nil
}

// offPatience is how long a domain may take to write everything to its disk.
const offPatience = 20 * time.Second

// End switches the domain off. The writes of its places are on its disk then,
// unless the domain does not answer.
func (m Machine) End(ctx context.Context) error {
	return m.locked(ctx, func() error {
		h, err := readHandle(m.StateDir)
		if errors.Is(err, driver.ErrMachineLost) {
			return nil
		}
		if err != nil {
			return err
		}
		m.asked(ctx, h)
		_, err = m.ask(ctx, h, OpStop)
		if errors.Is(err, driver.ErrMachineLost) {
			err = nil
		}
		return errors.Join(err, m.unmark(h))
	})
}

// asked asks the machine to end by itself, and waits for that.
func (m Machine) asked(ctx context.Context, h handle) {
	ctx, cancel := context.WithTimeout(ctx, offPatience)
	defer cancel()
	conn, err := m.port(ctx, h)
	if err == nil {
		_ = outpost.EndMachine(ctx, conn) // one that does not answer is stopped
	}
}

// Forget removes the domain with everything it has.
func (m Machine) Forget(ctx context.Context) error {
	return m.locked(ctx, func() error {
		h, err := readHandle(m.StateDir)
		if errors.Is(err, driver.ErrMachineLost) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, op := range []Op{OpStop, OpUndefine} {
			if _, err := m.ask(ctx, h, op); err != nil && !errors.Is(err, driver.ErrMachineLost) {
				return err
			}
		}
		if err := os.RemoveAll(h.Dir); err != nil {
			return driver.Seal(err, "cannot remove the disk of the domain")
		}
		for _, file := range []string{KeptFile, File} {
			if err := os.Remove(filepath.Join(m.StateDir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return driver.Seal(err, "cannot forget the domain")
			}
		}
		return nil
	})
}

// State asks libvirt for the state of the domain.
func (m Machine) State(ctx context.Context) (driver.Machine, error) {
	at := driver.Machine{CPU: -1, Memory: -1, Balloon: -1, Used: -1, Read: -1, Written: -1}
	h, err := readHandle(m.StateDir)
	if err != nil {
		return at, err
	}
	answer, err := m.ask(ctx, h, OpState)
	if err != nil {
		return at, err
	}
	at.Name, at.State, at.Reason = nameOf(h.UUID), string(answer.State), answer.Reason
	return at, nil
}

// Measure is State with what a domain that is on uses. agent asks whether its outpost
// answers; a domain that stands still is not asked.
func (m Machine) Measure(ctx context.Context, agent func(context.Context) error) (driver.Machine, error) {
	h, err := readHandle(m.StateDir)
	if err != nil {
		return driver.Machine{}, err
	}
	answer, err := m.ask(ctx, h, OpMeasure)
	if errors.Is(err, driver.ErrMachineLost) { // it is off, or libvirt does not know it
		return m.State(ctx)
	}
	if err == nil && answer.Measures == nil {
		err = driver.Joined(driver.ErrUnreachable, errors.New("libvirt measured nothing"))
	}
	if err != nil {
		return driver.Machine{}, err
	}
	used := answer.Measures
	at := driver.Machine{
		Name: nameOf(h.UUID), State: string(answer.State), Reason: answer.Reason,
		CPU: time.Duration(used.CPU), Memory: used.Memory, Balloon: used.Balloon, Used: used.Used, Read: used.Read, Written: used.Written,
	}
	if answer.State == Runs && agent != nil {
		ctx, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		answers := agent(ctx) == nil
		at.Agent = &answers
	}
	return at, nil
}
