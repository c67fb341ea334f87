package attack_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// fileAttacks target the host's files.
func fileAttacks() []attack {
	return []attack{
		{
			Name:    "read the host's files",
			Control: func(w *world) { w.wantSecret("reading", w.Shell(w.plantSecrets())) },
			Run: func(w *world) {
				script := w.plantSecrets()
				w.sandbox()
				w.wantNoSecret("reading inside", w.Inside(box, "/bin/sh", "-c", script))
				w.wantNoSecret("searching inside", w.Inside(box, "/bin/sh", "-c",
					"grep -rhs secret- /home /root /mnt /media /srv /run /tmp /var /dev/shm /etc "+w.Dir+" | head -c 100000"))
			},
		},
		{
			Name: "write the host's files",
			Control: func(w *world) {
				path := filepath.Join(w.Home, ".bashrc")
				w.Put(path, "")
				w.Shell("echo attacked >> " + path)
				w.wantContent(path, "attacked\n")
			},
			Run: func(w *world) {
				victims := []string{
					filepath.Join(w.Home, ".bashrc"), filepath.Join(w.Home, ".ssh/authorized_keys"),
					filepath.Join(w.Dir, "src/other/Makefile"), filepath.Join(w.Repo, ".git/hooks/post-checkout"),
				}
				for _, victim := range victims {
					w.Put(victim, "before\n")
				}
				w.sandbox()
				for _, victim := range append(victims, filepath.Join(w.Repo, "README")) {
					w.Inside(box, "/bin/sh", "-c", "mkdir -p $(dirname "+victim+"); echo attacked >> "+victim+"; rm -f "+victim+"; echo attacked > "+victim)
				}
				for _, victim := range victims {
					w.wantContent(victim, "before\n")
				}
				w.wantContent(filepath.Join(w.Repo, "README"), "hello\n")
			},
		},
		{
			Name:    "write system directories",
			Control: func(w *world) { w.wantWritable(w.Shell(tryWriting(w.Canary)).Stdout, 1) },
			Run: func(w *world) {
				w.sandbox()
				got := w.Inside(box, "/bin/sh", "-c", tryWriting("/ /usr /usr/bin /usr/local /usr/local/bin /usr/lib /bin /sbin /lib /lib64 /etc /opt /sys "+
					"/sys/devices /sys/devices/system/cpu /proc /proc/sys /proc/sys/kernel /proc/sys/net /proc/sys/fs /proc/irq /proc/bus /proc/fs /var /srv /mnt /media /home"))
				w.wantWritable(got.Stdout, 0)
			},
		},
		{
			Name: "hold the host's files without writing",
			Control: func(w *world) {
				path := filepath.Join(w.Repo, "README")
				got := w.outcomes(w.probeOutside("hold", path))
				if got["lease "+path] != "ok" {
					w.Errorf("a file of one's own cannot be held outside either: %v", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				got := w.outcomes(w.probeInside("hold", filepath.Join(w.Repo, "README"), "/var/lib/litterbox/roots.pem",
					"/var/lib/litterbox/roots-own.pem", "/etc/passwd", "/usr/bin/env", "/.litterbox/git-fsmonitor"))
				const everywhere = 6 // two answers for each file that every place has
				if len(got) < everywhere {
					w.Errorf("only these were tried: %v", got)
				}
				for name, answer := range got {
					if kind, _, _ := strings.Cut(name, " "); answer == "ok" || kind == "lease" && answer != "EINVAL" && (answer != "EACCES" || w.Place != threat.Degraded) {
						w.Errorf("%s answers %s", name, answer)
					}
				}
			},
		},
		{
			Name:    "open kernel switches for writing",
			Control: func(w *world) { w.wantWritable(w.Shell(tryOpening(filepath.Join(w.Repo, "README"))).Stdout, 1) },
			Run: func(w *world) {
				w.sandbox()
				got := w.Inside(box, "/bin/sh", "-c", tryOpening("/proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe "+
					"/proc/sys/kernel/hotplug /proc/sys/vm/overcommit_memory /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/hostname /proc/kcore /proc/kmsg "+
					"/sys/kernel/uevent_helper /sys/kernel/mm/transparent_hugepage/enabled /sys/fs/cgroup/cgroup.procs /sys/devices/system/cpu/cpu0/online "+
					"/dev/mem /dev/kmem /dev/kmsg /dev/port /dev/console /dev/vda /dev/sda /dev/nvme0n1 /dev/loop0 /dev/fuse /dev/kvm /dev/net/tun"))
				w.wantWritable(got.Stdout, 0)
			},
		},
		{
			Name: "read kernel secrets",
			Control: func(w *world) {
				if got := w.Shell("head -c1 /proc/kallsyms | wc -c").Stdout; strings.TrimSpace(got) != "1" {
					w.Fatalf("kallsyms cannot be read outside either: %q", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				for _, file := range []string{"kallsyms", "kcore", "kmsg", "keys", "timer_list", "vmallocinfo", "sched_debug", "interrupts"} {
					if got := w.Inside(box, "/bin/sh", "-c", "timeout 2 head -c1 /proc/"+file+" | wc -c"); strings.TrimSpace(got.Stdout) != "0" {
						w.Errorf("/proc/%s can be read inside", file)
					}
				}
			},
		},
		{
			Name: "mount over or remount",
			Control: func(w *world) {
				if got := w.probeOutside("bareshell", mounting); !strings.Contains(got.Stdout, "MOUNTED") {
					w.Fatalf("nothing can be mounted outside either: %s", got.Stderr)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				if got := w.Inside(box, "/bin/sh", "-c", mounting); strings.Contains(got.Stdout, "MOUNTED") {
					w.Errorf("mounts can be changed inside: %s", got.Stdout)
				}
			},
		},
		{
			Name: "find a device",
			Control: func(w *world) {
				if got := w.Shell(findDevices).Stdout; !strings.Contains(got, "/dev/null") {
					w.Fatalf("no device is found outside: %q", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				harmless := strings.Fields("/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/pts/ptmx")
				for _, device := range strings.Fields(w.Inside(box, "/bin/sh", "-c", findDevices).Stdout) {
					if !contains(harmless, device) {
						w.Errorf("there is a device inside: %s", device)
					}
				}
				got := w.Inside(box, "/bin/sh", "-c", "for d in 'b 8 0' 'b 254 0' 'c 1 1' 'c 1 11' 'c 10 229'; do mknod /tmp/device $d && echo MADE $d; rm -f /tmp/device; done")
				if strings.Contains(got.Stdout, "MADE") {
					w.Errorf("devices can be made inside: %s", got.Stdout)
				}
			},
		},
		setGroupAttack(),
		{
			Name: "leave set-user-id files",
			Control: func(w *world) {
				w.Shell("cp /bin/true " + w.Canary + "/true && chmod 4755 " + w.Canary + "/true")
				if got := w.privileged(w.Canary); len(got) != 1 {
					w.Fatalf("a set-user-id file is not noticed: %q", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				w.InsideShell(box, "for d in . $HOME /tmp /var/tmp; do cp /bin/true $d/t1; chmod 4755 $d/t1; cp /bin/true $d/t2; chmod g+s $d/t2; "+
					"install -m 6755 /bin/true $d/t3; perl -e 'use Fcntl; sysopen(F, \"'$d'/t4\", O_CREAT|O_WRONLY, 04755)'; done")
				if got := w.privileged(w.State); len(got) > 0 {
					w.Errorf("set-user-id files on the host: %q", got)
				}
				w.Must("write", box, "t5")
				w.Must("stop", box)
			},
		},
		{
			Name: "write a shared layer through a hard link",
			Control: func(w *world) {
				w.Shell("ln README hard && echo attacked >> hard")
				w.wantContent(filepath.Join(w.Repo, "README"), "hello\nattacked\n")
			},
			Run: func(w *world) {
				w.sandbox()
				w.InsideShell(box, "ln README hard; echo attacked >> hard; ln src/main.txt /tmp/hard && echo attacked >> /tmp/hard; ln /usr/bin/env $HOME/env && echo x >> $HOME/env")
				w.wantContent(filepath.Join(w.Repo, "README"), "hello\n")
				w.Must("create", "bystander")
				if got := w.Must("exec", "bystander", "--", "cat", "README", "src/main.txt"); got != "hello\nthe program" {
					w.Errorf("another sandbox of the same tree sees %q", got)
				}
			},
		},
		{
			Name: "plant overlay attributes",
			Control: func(w *world) {
				w.Put(filepath.Join(w.Canary, "dir"), "")
				got := w.outcomes(w.probeOutside("attributes", filepath.Join(w.Canary, "dir"), "user.overlay.redirect"))
				if got["user.overlay.redirect"] != "ok" || len(w.attributed(w.Canary)) != 1 {
					w.Fatalf("an attribute is not planted or not noticed: %v", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				w.InsideShell(box, "mkdir -p planted; echo x > planted/file")
				names := []string{
					"user.overlay.redirect", "user.overlay.metacopy", "user.overlay.opaque", "user.overlay.origin",
					"trusted.overlay.redirect", "user.overlay.overlay.redirect", "security.capability",
				}
				for _, path := range []string{"planted", "planted/file", ".", "src"} {
					w.probeInside(append([]string{"attributes", path}, names...)...)
				}
				if got := w.attributed(w.upper()); len(got) > 0 {
					w.Errorf("attributes that overlayfs obeys: %q", got)
				}
				w.Must("stop", box)
				w.Must("start", box)
				if got := w.Must("exec", box, "--", "ls", "-A", "planted"); got != "file" {
					w.Errorf("after a restart the directory holds %q", got)
				}
				if got := w.Git("ls-tree", "-r", "--name-only", box); strings.Contains(got, "passwd") {
					w.Errorf("the commit holds files from elsewhere:\n%s", got)
				}
			},
		},
		{
			Name: "lead the host through links",
			Control: func(w *world) {
				w.Put(filepath.Join(w.Home, "private/key"), w.Secret)
				w.Shell("ln -s " + w.Home + "/private/key link")
				w.wantSecret("following a link", w.Shell("cat link"))
			},
			Run: leadThroughLinks,
		},
		{
			Name: "escape from a copy to the host",
			Control: func(w *world) {
				w.Shell("mkdir out && ln -s " + w.Canary + " out/evil && echo x > out/evil/file")
				if len(w.touched()) != 1 {
					w.Fatal("a write through a link is not noticed")
				}
			},
			Run: func(w *world) {
				w.sandbox()
				out := filepath.Join(w.Dir, "out")
				if err := os.Mkdir(out, 0o755); err != nil {
					w.Fatal(err)
				}
				w.InsideShell(box, "mkdir -p a/d; ln -s "+w.Canary+" a/d/evil; mkdir -p b/d/evil; echo x > b/d/evil/file; ln -s "+w.Canary+"/new b/d/new")
				w.Litterbox("cp", box+":a/d", out)
				w.Litterbox("cp", box+":b/d", out)
				w.Litterbox("cp", box+":a/d", filepath.Join(out, "d"))
				w.Litterbox("cp", box+":b/d", filepath.Join(out, "d"))
				w.InsideShell(box, "echo x > c; echo x > new")
				w.Litterbox("cp", box+":new", filepath.Join(out, "d"))
				w.wantUntouched("copying out")
			},
		},
		{
			Name: "name paths with dots",
			Control: func(w *world) {
				w.Put(filepath.Join(w.Home, "key"), w.Secret)
				w.wantSecret("reading with dots", w.Shell("cat "+dotted(filepath.Join(w.Home, "key"))))
			},
			Run: func(w *world) {
				w.Put(filepath.Join(w.Home, "key"), w.Secret)
				w.sandbox()
				for _, path := range []string{dotted(filepath.Join(w.Home, "key")), filepath.Join(w.Home, "key"), "/proc/1/root" + w.Home + "/key"} {
					w.wantNoSecret("litterbox read "+path, w.Litterbox("read", box, path))
				}
				w.Litterbox("write", box, dotted(filepath.Join(w.Canary, "written")))
				w.Litterbox("write", box, filepath.Join(w.Canary, "written"))
				w.wantUntouched("litterbox write")
			},
		},
	}
}

// plantSecrets puts the secret everywhere that people keep secrets, and
// returns a script that reads each place.
func (w *world) plantSecrets() string {
	w.Helper()
	script := "true"
	for _, path := range []string{
		".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".docker/config.json", ".kube/config",
		".npmrc", ".cargo/credentials.toml", ".git-credentials", ".gnupg/private.key", ".bash_history",
	} {
		path = filepath.Join(w.Home, path)
		w.Put(path, w.Secret)
		script += "; cat " + path
	}
	for _, path := range []string{filepath.Join(w.Repo, ".env"), filepath.Join(w.Dir, "src/other/.env"), filepath.Join(w.Dir, "note")} {
		w.Put(path, w.Secret)
		script += "; cat " + path
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		file, err := os.CreateTemp(dir, "litterbox-attack-")
		if err != nil {
			continue // this machine has no such place for us
		}
		_, err = file.WriteString(w.Secret)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = os.Remove(file.Name()) })
		script += "; cat " + file.Name()
	}
	return script + "; cat .env"
}

// tryWriting makes a file in each directory and says where that worked.
func tryWriting(dirs string) string {
	return "for d in " + dirs + "; do if (: > $d/litterbox-attack) 2>/dev/null; then echo WRITABLE $d; rm -f $d/litterbox-attack; fi; done"
}

// tryOpening opens files to append to them and writes nothing: where that
// works on a host's kernel switch, no harm is done yet. A masked file is
// /dev/null, device 1:3, and may be written.
func tryOpening(paths string) string {
	return "for f in " + paths + `; do if test -e $f && test "$(stat -c %t:%T $f)" != 1:3 && (: >> $f) 2>/dev/null; then echo WRITABLE $f; fi; done`
}

func (w *world) wantWritable(output string, many int) {
	w.Helper()
	if strings.Count(output, "WRITABLE") != many {
		w.Errorf("writable are:\n%swant %d of them", output, many)
	}
}

// mounting tries the ways to change a mount that a shell has.
const mounting = `mount -t tmpfs none /mnt && echo MOUNTED tmpfs
mount --bind /tmp /mnt && echo MOUNTED bind
mount -o remount,bind,rw /usr && echo MOUNTED remount
mount -o remount,rw / && echo MOUNTED remount
mount -t proc proc /mnt && echo MOUNTED proc
umount -l /etc && echo MOUNTED away`

const findDevices = `find /dev -type b -o -type c 2>/dev/null`

func contains(list []string, one string) bool {
	for _, each := range list {
		if each == one {
			return true
		}
	}
	return false
}
