package container

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
)

// machine implements remote.Machine for one container.
type machine struct {
	kind   Kind
	engine Engine
	record Record
	err    error // why there is no record
}

func (d *Driver) machineOf(stateDir string) remote.Machine {
	m := machine{kind: d.kind, engine: d.engine}
	m.record, m.err = readRecord(stateDir)
	return m
}

// Name implements remote.Machine.
func (m machine) Name() string { return string(m.kind) + " container " + m.record.Name }

// why is the error for a sandbox without a record: one that never began is gone.
func (m machine) why() error {
	switch {
	case m.err == nil:
		return nil
	case errors.Is(m.err, fs.ErrNotExist):
		return driver.ErrMachineLost
	}
	return driver.Joined(driver.ErrUnreachable, m.err)
}

func (m machine) order(op Op) Order {
	return Order{Op: op, Kind: m.kind, Address: m.record.Address, Machine: m.record}
}

// Ensure implements remote.Machine.
func (m machine) Ensure(ctx context.Context) error {
	if err := m.why(); err != nil {
		return err
	}
	_, err := m.engine.Do(ctx, m.order(OpEnsure), nil)
	return err
}

// Dial implements remote.Machine.
func (m machine) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	if err := m.why(); err != nil {
		return nil, err
	}
	return m.engine.Dial(ctx, m.order(OpDial))
}

// Meeting implements remote.Neighbour.
func (m machine) Meeting() (here, there string) {
	if m.err != nil {
		return "", ""
	}
	return m.record.Meeting(), MeetingPath
}

// stateOf is the state directory that a sandbox's lies in.
func stateOf(stateDir string) string { return filepath.Dir(filepath.Dir(stateDir)) }
