package redteam

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// elsewhere is why attacks on files of this machine show nothing about a place in
// another one.
const elsewhere = "the sandbox is in another machine, where these files are not"

func fileAttacks() []Attack {
	return []Attack{
		{
			name: "read the host's files",
			near: elsewhere, try: readFiles,
		},
		{
			name: "write the host's files",
			near: elsewhere, try: changeFiles,
		},
		{
			name: "write system directories",
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				dirs := "/ /usr /usr/bin /usr/local/bin /usr/lib /bin /lib /etc /opt /sys /proc/sys/kernel /proc/sys/net /var /srv /mnt /home"
				if !p.inside() {
					dirs = w.canary
				}
				got, err := p.shell(ctx, "for d in "+dirs+"; do if (: > $d/litterbox-redteam) 2>/dev/null; then echo $d; rm -f $d/litterbox-redteam; fi; done")
				return listed("writable", got), err
			},
		},
		{
			name: "open kernel switches for writing",
			full: "in the degraded tier the permissions of the user decide",
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				files := "/proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hostname /proc/kcore " +
					"/sys/kernel/uevent_helper /sys/fs/cgroup/cgroup.procs /dev/mem /dev/kmsg /dev/port /dev/vda /dev/sda /dev/nvme0n1 /dev/loop0 /dev/fuse /dev/kvm /dev/net/tun"
				if !p.inside() {
					files = filepath.Join(p.dir, "README")
				}
				// Opening to append writes nothing. A masked file is /dev/null, device 1:3.
				got, err := p.shell(ctx, "for f in "+files+`; do if test -e $f && test "$(stat -c %t:%T $f)" != 1:3 && (: >> $f) 2>/dev/null; then echo $f; fi; done`)
				return listed("writable", got), err
			},
		},
		{
			name:    "mount over or remount",
			control: bare, full: "the control needs a user namespace",
			try: func(ctx context.Context, _ *world, p place) (outcome, error) {
				got, err := p.shell(ctx, "for m in '-t tmpfs none /mnt' '--bind /tmp /mnt' '-o remount,bind,rw /usr' '-t proc proc /mnt'; do mount $m 2>/dev/null && echo \"mount $m\"; done; umount -l /etc 2>/dev/null && echo umount")
				return listed("done", got), err
			},
		},
		{
			name: "hold the host's files without writing",
			try: func(ctx context.Context, _ *world, p place) (outcome, error) {
				answers, err := p.probe(ctx, "hold", "README")
				got := answers["lease README"]
				return outcome{escaped: got == "ok", seen: "fcntl answers " + got}, err
			},
		},
		{
			name: "leave set-user-id files",
			near: elsewhere, fresh: true,
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				dir := w.state
				if !p.inside() {
					dir = p.dir
				}
				if _, err := p.shell(ctx, "for d in . $HOME; do cp /bin/true $d/t1; chmod 4755 $d/t1; install -m 6755 /bin/true $d/t2; done"); err != nil {
					return outcome{}, err
				}
				found := 0
				err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
					if err != nil {
						return nil // gone meanwhile, or without permissions
					}
					if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
						found++
					}
					return nil
				})
				// The control leaves them in the home of the world too.
				for _, name := range []string{"t1", "t2"} {
					if rm := os.Remove(filepath.Join(w.home, name)); !errors.Is(rm, fs.ErrNotExist) {
						err = errors.Join(err, rm)
					}
				}
				return outcome{escaped: found > 0, seen: fmt.Sprintf("%d such files on the host", found)}, err
			},
		},
	}
}

// listed returns the outcome of a script that prints a line for each success.
func listed(what string, got result) outcome {
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if lines[0] == "" {
		return outcome{seen: "nothing is " + what}
	}
	if len(lines) > 3 {
		lines = append(lines[:3], "…")
	}
	return outcome{escaped: true, seen: what + ": " + strings.Join(lines, ", ")}
}

func readFiles(ctx context.Context, w *world, p place) (outcome, error) {
	files := []string{
		filepath.Join(w.home, ".ssh/id_ed25519"), filepath.Join(w.home, ".aws/credentials"), filepath.Join(w.home, ".netrc"),
		filepath.Join(w.home, ".config/gh/hosts.yml"), filepath.Join(w.base, "src/other/.env"), filepath.Join(w.repo, ".env"), filepath.Join(w.base, "note"),
	}
	script := ""
	for _, file := range files {
		if err := put(file, w.secret+"\n"); err != nil {
			return outcome{}, err
		}
		script += "cat " + file + " /proc/1/root" + file + " 2>/dev/null\n"
	}
	got, err := p.shell(ctx, script+"true")
	err = errors.Join(err, os.Remove(filepath.Join(w.repo, ".env"))) // later copies of the repository go without
	return w.leaked("of "+fmt.Sprint(len(files))+" files", got), err
}

// leaked returns the outcome of a result that must not show the secret.
func (w *world) leaked(where string, got result) outcome {
	n := strings.Count(got.stdout+got.stderr, w.secret)
	return outcome{escaped: n > 0, seen: fmt.Sprintf("the secret %s is shown %d times", where, n)}
}

func changeFiles(ctx context.Context, w *world, p place) (outcome, error) {
	victims := []string{
		filepath.Join(w.home, ".bashrc"), filepath.Join(w.home, ".ssh/authorized_keys"), filepath.Join(w.base, "src/other/Makefile"),
		filepath.Join(w.repo, ".git/hooks/post-checkout"),
	}
	script := ""
	for _, victim := range victims {
		if err := put(victim, "before\n"); err != nil {
			return outcome{}, err
		}
		script += "mkdir -p $(dirname " + victim + "); echo attacked >> " + victim + "; rm -f " + victim + "; echo attacked > " + victim + "\n"
	}
	if _, err := p.shell(ctx, script); err != nil {
		return outcome{}, err
	}
	changed := 0
	for _, victim := range victims {
		if got, err := os.ReadFile(victim); err != nil || string(got) != "before\n" {
			changed++
		}
	}
	// A hook must not stay for the attacks that follow.
	err := os.Remove(victims[len(victims)-1])
	return outcome{escaped: changed > 0, seen: fmt.Sprintf("%d of %d files are changed", changed, len(victims))}, err
}
