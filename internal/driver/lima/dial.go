package lima

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// dialPatience bounds how long SSH may take to reach the machine.
const dialPatience = 60 * time.Second

// sshFile is Lima's SSH configuration, in the directory of an instance. It stays
// when the instance is stopped.
const sshFile = "ssh.config"

// Dial implements remote.Machine. Lima is asked only when SSH fails: a listing
// takes longer than everything else.
func (m Machine) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	short, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	dir, err := m.known()
	if err == nil {
		conn, err := m.through(short, dir)
		if err == nil || !errors.Is(err, driver.ErrUnreachable) {
			return conn, err
		}
	}
	one, err := m.limactl(nil).Find(ctx, m.instance)
	switch {
	case err != nil:
		return nil, m.sealed(err)
	case one.Status == limactl.Stopped, one.Status == limactl.Uninitialized:
		stopped := fault.Wrap("", driver.ErrMachineLost, "the virtual machine %q is stopped", m.instance)
		if m.golden == nil {
			stopped = stopped.WithHint("litterbox machine start")
		}
		return nil, stopped
	case one.Status != limactl.Running:
		return nil, m.broken(one, nil)
	}
	if err := m.apart(one); err != nil {
		return nil, err
	}
	return m.through(short, one.Dir)
}

// agentFile has the process that Lima keeps on the host for an instance that runs.
const agentFile = "ha.pid"

// known is the directory of an instance that seems to run.
func (m Machine) known() (string, error) {
	home := ""
	for _, entry := range m.options.Env {
		if value, ok := strings.CutPrefix(entry, "LIMA_HOME="); ok {
			home = value
		} else if value, ok := strings.CutPrefix(entry, "HOME="); ok && home == "" {
			home = filepath.Join(value, ".lima")
		}
	}
	dir := filepath.Join(home, m.instance)
	if !filepath.IsAbs(dir) {
		return "", os.ErrNotExist
	}
	if _, err := os.Stat(filepath.Join(dir, sshFile)); err != nil {
		return dir, err
	}
	// The port in the file is free for other machines when this one has ended.
	data, err := os.ReadFile(filepath.Join(dir, agentFile))
	if err != nil {
		return dir, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return dir, os.ErrNotExist
	}
	return dir, syscall.Kill(pid, 0)
}

// through opens the stream of an outpost with Lima's SSH configuration. The
// outpost is root's there: Lima's user may become root without a password. That of
// live environments is the user's: files of the mount have the ids that they have
// here, and a mount of the host's cannot shift them.
func (m Machine) through(ctx context.Context, dir string) (io.ReadWriteCloser, error) {
	dirThere, sudo := there, true
	if m.shown != "" {
		dirThere, sudo = thereEnv, false
	}
	host := &remote.SSH{
		Machine: machine.Machine{Name: m.instance, Host: "lima-" + m.instance, Dir: dirThere, System: "linux", Architecture: m.architecture()},
		Program: m.options.Outpost, Env: m.options.Env, Config: filepath.Join(dir, sshFile), Sudo: sudo,
	}
	return host.Dial(ctx)
}
