package namespace

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// shiftBase is the first of the ids of sandboxes run by root: above every range
// that systemd-nspawn (0x80000–0x6fffffff) and useradd hand out, below 2^31,
// which some programs cannot go past.
const (
	shiftBase  = 0x7000_0000
	shiftCount = 1 << 24
)

// shiftFor gives each sandbox an id of its own, so that two of them cannot
// touch each other's files even through a hole in both walls.
func shiftFor(sandboxID string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(sandboxID)) // never fails
	return shiftBase + int(hash.Sum32()%shiftCount)
}

// Ownership implements driver.Driver. An inner uid 0 without capabilities
// confuses tar, npm and others that then try to chown, so root's sandboxes
// have an ordinary inner user.
func (Driver) Ownership(sandboxID string) driver.Ownership {
	if realRoot() {
		shift := shiftFor(sandboxID)
		return driver.Ownership{UID: ordinaryID, GID: ordinaryID, ChownLayers: true, UpperUID: shift, UpperGID: shift}
	}
	own := driver.Ownership{UID: os.Geteuid(), GID: os.Getegid(), UpperUID: -1, UpperGID: -1}
	if own.UID == 0 {
		own.UID, own.GID = ordinaryID, ordinaryID
	}
	return own
}

// ordinaryID is the first uid that useradd gives to a human.
const ordinaryID = 1000

// realRoot reports whether we hold CAP_SYS_ADMIN where it counts, so that ids
// are shifted. Root in a container without it is treated like an ordinary user.
func realRoot() bool {
	if os.Geteuid() != 0 {
		return false
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0 && idsMapped()
}

// idsMapped reports whether the ids of sandboxes exist in our user namespace
// (user_namespaces(7), /proc/pid/uid_map). Root in a container that maps fewer
// ids cannot hand them out. The map is written once in a namespace's life, and
// a process of several threads cannot change to another one.
var idsMapped = sync.OnceValue(func() bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	return holdsShift(string(data))
})

func holdsShift(uidMap string) bool {
	for line := range strings.Lines(uidMap) {
		var inside, outside, count int64
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err == nil &&
			inside <= shiftBase && inside+count >= shiftBase+shiftCount {
			return true
		}
	}
	return false
}

// prepare makes the directories that become /tmp, HOME and so on. They persist.
func prepare(spec driver.Spec, config stage.Config) error {
	uid, gid := -1, -1 // leave as they are
	if config.Shift != 0 {
		uid, gid = config.Shift, config.Shift
	}
	dirs := []preparedDir{
		{config.Root, 0o755, false},
		{filepath.Join(spec.StateDir, "tmp"), 0o1777, true},
		{filepath.Join(spec.StateDir, "var-tmp"), 0o1777, true},
		{filepath.Join(spec.StateDir, "home"), 0o700, true},
	}
	if len(spec.Workspace.Layers) > 0 { // else it is the workspace, and must exist
		dirs = append(dirs, preparedDir{spec.Workspace.Upper, 0o755, true}, preparedDir{spec.Workspace.Work, 0o755, false})
	}
	if len(config.Frozen.Home) > 0 {
		dirs = append(dirs, preparedDir{filepath.Join(spec.StateDir, stage.HomeWork), 0o755, false})
	}
	if spec.System != nil && spec.System.Install {
		own, err := installDirs(spec)
		if err != nil {
			return err
		}
		dirs = append(dirs, own...)
	}
	for _, cache := range spec.Caches {
		base := filepath.Join(spec.StateDir, "caches", cache.Name)
		dirs = append(dirs, preparedDir{filepath.Dir(base), 0o700, false}, preparedDir{base, 0o700, false},
			preparedDir{filepath.Join(base, "upper"), 0o755, true}, preparedDir{filepath.Join(base, "work"), 0o755, false})
	}
	for _, dir := range dirs {
		if err := dir.prepare(uid, gid); err != nil {
			return err
		}
	}
	for _, cache := range spec.Caches {
		if err := maskCache(filepath.Join(spec.StateDir, "caches", cache.Name, "mask"), cache.Hidden, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

// preparedDir is a directory that persists; own means that the sandbox's user owns it.
type preparedDir struct {
	path string
	mode fs.FileMode
	own  bool
}

// prepare makes the directory, whole or not at all: the mode of one that exists,
// from an earlier start or made by the engine, is the sandbox's own.
func (d preparedDir) prepare(uid, gid int) error {
	if !d.own {
		uid, gid = -1, -1
	}
	if _, err := os.Lstat(d.path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, os.Lchown(d.path, uid, gid))
	}
	fresh := d.path + ".new" // may be left from a start that was killed
	if err := os.Mkdir(fresh, d.mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	mode := d.mode.Perm()
	if d.mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	// Regardless of the umask.
	if err := errors.Join(os.Chmod(fresh, mode), os.Lchown(fresh, uid, gid)); err != nil {
		return err
	}
	return os.Rename(fresh, d.path)
}

// installDirs receive what a package manager writes.
func installDirs(spec driver.Spec) ([]preparedDir, error) {
	names := []string{""}
	if spec.Base == nil {
		entries, err := os.ReadDir(spec.System.Foundation)
		if err != nil {
			return nil, err
		}
		names = nil
		for _, entry := range entries {
			if entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
	}
	all := filepath.Join(spec.StateDir, "caches")
	dirs := []preparedDir{{spec.Workspace.Upper, 0o755, true}, {all, 0o700, false}}
	for _, name := range names {
		base := filepath.Join(all, frozen.SystemPart(spec.System.Foundation, name))
		dirs = append(dirs, preparedDir{base, 0o700, false}, preparedDir{filepath.Join(base, "upper"), 0o755, true},
			preparedDir{filepath.Join(base, "work"), 0o755, false})
	}
	return dirs, nil
}

// maskCache makes the layer above a cache that hides parts of it: empty
// directories that show nothing of what is below them (overlayfs.rst,
// "whiteouts and opaque directories"), and empty files. The sandbox cannot
// write it.
func maskCache(mask string, hidden []string, uid, gid int) error {
	for _, name := range hidden {
		for at, rest := mask, name; ; {
			if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if err := errors.Join(os.Chmod(at, 0o755), os.Lchown(at, uid, gid)); err != nil {
				return err
			}
			if rest == "" {
				if err := unix.Setxattr(at, "user.overlay.opaque", []byte("y"), 0); err != nil {
					return err
				}
				break
			}
			part, below, more := strings.Cut(rest, "/")
			at, rest = filepath.Join(at, part), below
			if !more {
				if err := errors.Join(os.WriteFile(at, nil, 0o644), os.Lchown(at, uid, gid)); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// etcFiles returns the files of the layer above the host's /etc.
func etcFiles(spec driver.Spec) map[string]string {
	hosts := map[string]string{
		"hosts":    fmt.Sprintf("127.0.0.1 localhost\n::1 localhost\n127.0.1.1 %s\n", spec.Name),
		"hostname": spec.Name + "\n",
		// The guest answers for every server; this one is the sandbox's own address.
		"resolv.conf": "nameserver 100.64.0.1\noptions timeout:5 attempts:2\n",
	}
	if spec.System != nil && spec.System.Install {
		return hosts // packages may add users and services
	}
	shell := spec.User.Shell
	if shell == "" {
		shell = "/bin/sh"
	}
	maps.Copy(hosts, map[string]string{
		"passwd": fmt.Sprintf("root:x:0:0:root:/root:/usr/sbin/nologin\n%s:x:%d:%d:litterbox:%s:%s\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			spec.User.Name, spec.User.UID, spec.User.GID, spec.Home, shell),
		"group":         fmt.Sprintf("root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", spec.User.Name, spec.User.GID),
		"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n",
	})
	return hosts
}
