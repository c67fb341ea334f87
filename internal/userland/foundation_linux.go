package userland

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
)

// format is part of the key: another program may make other foundations.
const format = "1"

const status = "var/lib/dpkg/status"

// Foundation gives the directory of the foundation for the packages that the
// host has now, and makes it when there is none.
func (s Store) Foundation(ctx context.Context) (string, error) {
	key, err := s.key()
	if errors.Is(err, fs.ErrNotExist) {
		return "", noManager()
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read which packages this machine has")
	}
	dir := filepath.Join(s.Dir, key)
	if _, err := os.Stat(dir); err == nil {
		now := time.Now()
		_ = os.Chtimes(dir, now, now) // so that nothing clears it away meanwhile
		return dir, nil
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot make %q", s.Dir)
	}
	held, err := os.OpenFile(filepath.Join(s.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot prepare the system directories for packages")
	}
	defer held.Close()
	if err := lock.File(ctx, held); err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	partial := dir + ".partial"
	err = hostile.Remove(partial)
	if err == nil {
		err = s.fill(ctx, partial)
	}
	if err == nil {
		err = os.Rename(partial, dir)
	}
	if err != nil {
		return "", errors.Join(fault.Wrap(fault.Unavailable, err, "cannot prepare the system directories for packages"), hostile.Remove(partial))
	}
	return dir, nil
}

// key changes with the packages that the host has.
func (s Store) key() (string, error) {
	f, err := os.Open(filepath.Join(s.Root, status))
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	fmt.Fprintln(hash, format, s.Owner)
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// shown are the host's directories that stay below a foundation.
func shown() []string {
	return []string{"usr", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "libo32"}
}

// own reports whether a file of /etc is one that every sandbox has of its own.
func own(name string) bool {
	switch name {
	case "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/machine-id", "etc/passwd", "etc/group", "etc/shadow", "etc/gshadow",
		"etc/passwd-", "etc/group-", "etc/subuid", "etc/subgid", "etc/subuid-", "etc/subgid-":
		return true
	}
	return false
}

func (s Store) fill(ctx context.Context, to string) error {
	c := copier{ctx: ctx, root: s.Root, to: to, owner: s.Owner}
	if err := c.make("", 0o755); err != nil {
		return err
	}
	for _, name := range shown() {
		info, err := os.Lstat(filepath.Join(s.Root, name))
		if err != nil || !info.IsDir() {
			continue // a link of a merged /usr, or nothing
		}
		if err := c.tree(name, false); err != nil {
			return err
		}
	}
	for _, name := range []string{"etc", "var/lib/dpkg", "var/lib/ucf", "var/lib/pam"} {
		if _, err := os.Lstat(filepath.Join(s.Root, name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := c.parents(name); err != nil {
			return err
		}
		if err := c.tree(name, true); err != nil {
			return err
		}
	}
	if err := c.users(); err != nil {
		return err
	}
	if err := c.listed(); err != nil {
		return err
	}
	for _, name := range []string{
		"var/cache/apt/archives/partial", "var/cache/debconf", "var/cache/ldconfig", "var/lib/apt/lists/partial", "var/lib/apt/mirrors/partial",
		"var/lib/apt/periodic", "var/lib/misc", "var/log/apt", "var/mail", "var/spool", "var/tmp", "var/local", "var/opt", "var/backups",
	} {
		if err := errors.Join(c.parents(name), c.make(name, 0o755)); err != nil {
			return err
		}
	}
	return errors.Join(c.link("/run", "var/run"), c.link("/run/lock", "var/lock"))
}

// firstPerson is the first id that useradd gives to a person, and nobody the last.
const firstPerson, nobody = 1000, 65534

// What follows a name in shadow(5) and gshadow(5) that signs in by no password.
const noPassword, noGroupPassword = ":*:19000:0:99999:7:::\n", ":*::\n"

// users are those of the system, which packages look for. People of the host are
// not named, and no one can sign in.
func (c copier) users() error {
	for from, locked := range map[string]struct{ name, rest string }{
		"etc/passwd": {"etc/shadow", noPassword}, "etc/group": {"etc/gshadow", noGroupPassword},
	} {
		data, err := os.ReadFile(filepath.Join(c.root, from))
		if err != nil {
			continue // an unusual host
		}
		var lines, shadow strings.Builder
		for line := range strings.Lines(string(data)) {
			fields := strings.SplitN(line, ":", 4) // passwd(5), group(5): NAME:x:ID:…
			if len(fields) < 4 {
				continue
			}
			id, err := strconv.Atoi(fields[2])
			if err != nil || id >= firstPerson && id != nobody {
				continue
			}
			if from == "etc/group" {
				line = strings.Join(fields[:3], ":") + ":\n" // without its members
			}
			lines.WriteString(line)
			shadow.WriteString(fields[0] + locked.rest)
		}
		err = c.file(from, strings.NewReader(lines.String()), 0o644)
		if err = errors.Join(err, c.file(locked.name, strings.NewReader(shadow.String()), 0o640)); err != nil {
			return err
		}
	}
	return nil
}
