package attack_test

import (
	"net"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// hostileScript is what a hostile package does as root: it reaches for everything
// around it, and leaves files that would have an effect. %r is the repository, %h the
// human's HOME, %c the directory that nothing may touch, %p a port of the host's.
const hostileScript = `#!/bin/sh
(
id -u
grep CapEff /proc/self/status
cat %r/README
ls -A %h
cat %h/secret
cat /etc/shadow | grep -v ':[*]:'
for at in %c %r %h /boot /srv; do (echo attacked >$at/attacked) 2>/dev/null && echo wrote $at; done
mknod /usr/bin/device b 8 0 && echo device
mknod /usr/bin/zero c 1 5 && echo device
mount -t tmpfs none /mnt && echo mounted
unshare -r true && echo namespace
chroot / true && echo chroot
echo x >/proc/sys/kernel/core_pattern && echo switch
for at in /dev/sd? /dev/vd? /dev/nvme* /dev/mem /dev/kmsg; do [ -e $at ] && echo found $at; done
python3 -c 'import socket; print(socket.create_connection(("127.0.0.1", %p), 60).recv(7).decode())'
cp /bin/true /usr/bin/planted; chown root:root /usr/bin/planted; chmod 6755 /usr/bin/planted
ln -s %c /usr/share/planted; ln -s %c/link /etc/planted; ln -s %c /var/lib/planted
) >/usr/share/hostile.log 2>/dev/null
true
`

// packageAttacks install a package whose scripts are the attack.
func packageAttacks() []attack {
	return []attack{{
		Name: "install a hostile package",
		Control: func(w *world) {
			w.Shell("cp /bin/true " + w.Dir + "/planted; chmod 6755 " + w.Dir + "/planted")
			if len(w.privileged(w.Dir)) == 0 {
				w.Fatal("a set-id bit is not seen")
			}
			w.Put(filepath.Join(w.Dir, "hostile.sh"), hostile(w))
			w.Put(filepath.Join(w.Home, "secret"), "the secret\n")
			w.Shell("mkdir -p " + w.Dir + "/share; sed 's:/usr/share/hostile.log:" + w.Dir + "/share/log:; s:/usr/:" + w.Dir + "/no/:g; s:/etc/planted:" + w.Dir + "/no:; s:/var/lib/planted:" + w.Dir + "/no:; /mknod/d; /mount/d; /core_pattern/d' " + w.Dir + "/hostile.sh >" + w.Dir + "/control.sh; sh " + w.Dir + "/control.sh")
			got := w.Shell("cat " + w.Dir + "/share/log")
			if !strings.Contains(got.Stdout, "the secret") || !strings.Contains(got.Stdout, "reached") || len(w.touched()) == 0 {
				w.Fatalf("the script reaches nothing, or it is not seen: %s%s", got.Stdout, got.Stderr)
			}
		},
		Run: func(w *world) {
			program.Need(w, "dpkg-deb", "apt-get", "python3")
			w.sandbox()
			w.Put(filepath.Join(w.Home, "secret"), "the secret\n")
			pkg := filepath.Join(w.Dir, "package")
			w.Put(filepath.Join(pkg, "DEBIAN/control"), "Package: hostile\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.com>\nDescription: an attack\n")
			w.Put(filepath.Join(pkg, "DEBIAN/postinst"), hostile(w))
			w.Shell("chmod 755 " + pkg + " " + pkg + "/DEBIAN " + pkg + "/DEBIAN/postinst; dpkg-deb --root-owner-group --build " + pkg + " " + w.Dir + "/hostile.deb")
			w.Must("install", box, w.Dir+"/hostile.deb")
			w.wantUntouched("installing")
			got := w.Inside(box, "cat", "/usr/share/hostile.log")
			if want := "0\nCapEff:\t0000000000000000\n"; got.Stdout != want {
				w.Errorf("the package's script reached more than it should:\n%s%s", got.Stdout, got.Stderr)
			}
			if bad := meaning(w, filepath.Join(w.State, "litterbox")); len(bad) > 0 {
				w.Errorf("the package left %q", bad)
			}
			got = w.Inside(box, "/bin/sh", "-c", "/usr/bin/planted && grep -c NoNewPrivs:.1 /proc/self/status; for at in /usr/share/planted /var/lib/planted /usr/bin /etc /var; do (echo x >$at/new) 2>/dev/null && echo wrote $at; done; (echo x >/etc/planted) 2>/dev/null && echo wrote a link; true")
			if got.Stdout != "1\n" {
				w.Errorf("in the sandbox: %s%s", got.Stdout, got.Stderr)
			}
			// Another sandbox has nothing of it, and neither has the host.
			w.Must("create", "other")
			got = w.Inside("other", "/bin/sh", "-c", "for at in /usr/bin/planted /usr/share/hostile.log /etc/planted; do test -e $at && echo $at; done; true")
			if got.Stdout != "" {
				w.Errorf("another sandbox has %s", got.Stdout)
			}
			if got := w.Shell("test -e /usr/bin/planted || test -e /usr/share/hostile.log || dpkg -s hostile 2>/dev/null"); got.Code == 0 {
				w.Errorf("the host has it: %s", got.Stdout)
			}
			w.wantUntouched("using it")
		},
	}}
}

// hostile is the script for a world, whose host serves a port from now on.
func hostile(w *world) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			_, _ = conn.Write([]byte("reached"))
			conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		w.Fatal(err)
	}
	return strings.NewReplacer("%r", w.Repo, "%h", w.Home, "%c", w.Canary, "%p", port).Replace(hostileScript)
}
