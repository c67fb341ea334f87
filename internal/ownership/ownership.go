// Package ownership checks that a path is under the control of the user who
// runs this process: that no other ordinary user can change or replace the file
// there. Files that are executed, loaded or trusted because of their place
// (programs, records, trust, configuration) are checked before use.
//
// Root with another user's HOME (`sudo -E`, `su` without `-`) would otherwise
// execute what that user planted. The rule for every component of the path:
//
//   - it belongs to the effective user or to root;
//   - neither its group nor others may write to it, unless it is a directory
//     with the sticky bit, whose entries only their owners can replace, or the
//     group holds only the user;
//   - a link is followed by the same rule. A link of the user's own in a
//     directory of the user's own decides no more than a directory there would.
//
// Others cannot change a path that passed, so a check before use is enough. It
// deliberately reads no access control list: their mask shows in the bits of
// the group. Start reading at [Check].
package ownership

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxLinks is how many links a path may have, as in path_resolution(7).
const maxLinks = 40

// Directory checks a directory that must belong to the effective user alone,
// and returns its path without links. It fails with fault.Denied, naming the
// component that others control, its owner and the command to type.
func Directory(path string) (real string, err error) {
	real, last, err := resolve(path)
	if err != nil {
		return "", err
	}
	if uid, _ := owner(last); uid != os.Geteuid() {
		return "", belongs(path, real, uid)
	}
	return real, nil
}

// Check checks a path of any kind that belongs to the effective user or to
// root. A path that does not exist fails with fs.ErrNotExist.
func Check(path string) error {
	_, _, err := resolve(path)
	return err
}

// Entry is Check for an entry of a directory that [Directory] has returned, whose
// components are not checked again.
func Entry(dir, name string) error {
	at := filepath.Join(dir, name)
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return Check(at)
	}
	return judge(at, at, info)
}

// ForRoot refuses to let root write in another user's place: the owner could not
// change files that root makes there. Other users cannot write there anyway. The
// hint is the command to type as the owner.
func ForRoot(path string) error {
	info, err := os.Stat(path)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	uid, _ := owner(info)
	if uid == 0 {
		return nil
	}
	name := "'#" + strconv.Itoa(uid) + "'"
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		name = found.Username
	}
	return fault.New(fault.Denied, "%q belongs to %s, and this is root", path, userName(uid)).
		WithHint("sudo -H -u %s litterbox %s", name, strings.Join(os.Args[1:], " "))
}

// resolve follows a path from the root, component by component.
func resolve(path string) (real string, last fs.FileInfo, err error) {
	if !filepath.IsAbs(path) {
		return "", nil, fault.New(fault.Internal, "cannot check who owns %q: the path is not absolute", path)
	}
	real = "/"
	rest := strings.Split(path, "/")
	links := 0
	for step := ""; ; {
		at := filepath.Join(real, step)
		if last, err = os.Lstat(at); err != nil {
			return "", nil, err
		}
		if err := judge(path, at, last); err != nil {
			return "", nil, err
		}
		if last.Mode()&fs.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return "", nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
			}
			target, err := os.Readlink(at)
			if err != nil {
				return "", nil, err
			}
			if filepath.IsAbs(target) {
				real = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
		} else {
			real = at
		}
		for step = ""; step == "" && len(rest) > 0; rest = rest[1:] {
			step = rest[0]
		}
		if step == "" {
			return real, last, nil
		}
	}
}

// judge refuses a component that another ordinary user controls.
func judge(path, at string, info fs.FileInfo) error {
	uid, gid := owner(info)
	if uid != 0 && uid != os.Geteuid() && (at == path || !unmapped(uid)) {
		return belongs(path, at, uid)
	}
	if info.Mode()&fs.ModeSymlink != 0 || info.IsDir() && info.Mode()&fs.ModeSticky != 0 {
		return nil // a link has no mode of its own
	}
	shared := info.Mode().Perm() & 0o022
	if shared&0o002 == 0 && shared != 0 && alone(gid) {
		shared = 0
	}
	if shared == 0 {
		return nil
	}
	who := "every user"
	if shared&0o002 == 0 {
		who = "the group " + groupName(gid)
	}
	return fault.New(fault.Denied, "cannot use %q: %s may write to %q (mode %04o)", path, who, at, info.Mode().Perm()).
		WithHint("chmod go-w %s", at)
}

func belongs(path, at string, uid int) error {
	self := os.Geteuid()
	err := fault.New(fault.Denied, "cannot use %q: %q belongs to %s, and this is %s", path, at, userName(uid), userName(self))
	if self == 0 {
		return err.WithHint("sudo -H litterbox, or export XDG_STATE_HOME=/root/.local/state XDG_CONFIG_HOME=/root/.config; if it is root's own: chown root %s", at)
	}
	return err.WithHint("export XDG_STATE_HOME=/a/directory/of/your/own; if it is yours: sudo chown %d %s", self, at)
}

// owner returns the owner of a file; without ids, as on file systems of other
// systems, it is everyone's.
func owner(info fs.FileInfo) (uid, gid int) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, -1
	}
	return int(stat.Uid), int(stat.Gid)
}

// userName returns a user as shown in messages: lbdev (uid 1001).
func userName(uid int) string {
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s (uid %d)", found.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}

func groupName(gid int) string {
	if found, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
		return found.Name
	}
	return strconv.Itoa(gid)
}
