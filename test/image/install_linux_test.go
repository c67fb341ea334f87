package image_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// packager is a package manager of the image: it changes a file of it, makes one in
// a directory that may be another's, and one that its own users cannot enter.
const packager = `#!/bin/sh
case "$*" in *-y*) ;; *) exit 0 ;; esac
set -e
[ "$(id -u)" = 0 ]
echo installed >>/var/lib/records
cat "$4" >>/var/mail/box
touch /var/lib/closed/mark
echo again >>/etc/hosts.allow
`

// install installs packages above an image, and looks for the files of each
// after a stop, in a fork and in a past.
func install(t *testing.T, baseImage string) {
	h := built.New(t)
	configure(h, baseImage)
	h.Must("create", "box")
	one, two := filepath.Join(h.Dir, "one.deb"), filepath.Join(h.Dir, "two.deb")
	h.Put(one, "one\n")
	h.Put(two, "two\n")
	const look = "cat /var/lib/records /var/mail/box /etc/hosts.allow; grep -c 100.64.0.1 /etc/resolv.conf; touch /var/lib/records 2>/dev/null || echo closed"
	both := "found\ninstalled\ninstalled\none\ntwo\nagain\nagain\n1\nclosed"
	first := "found\ninstalled\none\nagain\n1\nclosed"
	check := func(name, want string) {
		t.Helper()
		if got := inside(h, name, look); got != want {
			t.Errorf("in %s there is\n%s\nwant\n%s", name, got, want)
		}
	}
	h.Must("install", "box", one)
	check("box", first)
	h.Must("snapshot", "box", "past")
	h.Must("install", "box", two)
	check("box", both)
	h.Must("stop", "box")
	check("box", both)
	h.Must("fork", "box", "other")
	check("other", both)
	h.Must("restore", "box", "past")
	check("box", first)
}

func TestInstallAboveImage(t *testing.T) {
	install(t, "oci:"+writeLayout(t, imageOf(t, v1.Config{}, programs(t), layer(t,
		entry{name: "usr/bin/apt-get", content: packager}, entry{name: "usr/sbin/"}, entry{name: "var/lib/closed/", mode: 0o700},
		entry{name: "var/mail/"}, entry{name: "var/lib/records", content: "found\n", mode: 0o644}, entry{name: "sys/"},
	))))
}

// Of a directory, root can have some belong to others, as in every Debian.
func TestInstallAboveDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rootfs")
	for name, content := range map[string]string{
		"bin/busybox": string(busybox(t)), "usr/bin/apt-get": packager, "usr/sbin/": "", "etc/": "", "tmp/": "", "proc/": "", "sys/": "",
		"var/lib/closed/": "", "var/mail/": "", "var/lib/records": "found\n",
	} {
		path := dir + "/" + name
		err := os.MkdirAll(filepath.Dir(path), 0o755) // with a slash at its end, itself
		if err == nil && !strings.HasSuffix(name, "/") {
			err = os.WriteFile(path, []byte(content), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, applet := range strings.Fields("sh cat ls id touch grep mkdir chmod rm") {
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", applet)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "var/lib/closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		for _, name := range []string{"var/lib/closed", "var/mail"} {
			if err := os.Chown(filepath.Join(dir, name), 0, 42); err != nil {
				t.Fatal(err)
			}
		}
	}
	install(t, dir)
}
