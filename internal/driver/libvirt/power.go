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

// Measure asks libvirt what the domain uses.
func (m Machine) Measure(ctx context.Context) (Measures, error) {
	h, err := readHandle(m.StateDir)
	if err != nil {
		return Measures{}, err
	}
	answer, err := m.ask(ctx, h, OpMeasure)
	if err == nil && answer.Measures == nil {
		err = driver.Joined(driver.ErrUnreachable, errors.New("libvirt measured nothing"))
	}
	if err != nil {
		return Measures{}, err
	}
	return *answer.Measures, nil
}
