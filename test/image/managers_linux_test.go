package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const helloSpec = `Name: hello-box
Version: 1.0
Release: 1
Summary: says hello
License: MIT
BuildArch: noarch
AutoReqProv: no
Provides: /bin/sh
%description
It says hello.
%install
mkdir -p %{buildroot}/usr/bin %{buildroot}/var/lib/hello-box
printf '#!/bin/sh\necho hello\n' >%{buildroot}/usr/bin/hello-box
cp %{buildroot}/usr/bin/hello-box %{buildroot}/usr/bin/hello-other
%post
echo began >/var/lib/hello-box/state
%files
%attr(0755,root,root) /usr/bin/hello-box
%attr(4755,root,mail) /usr/bin/hello-other
%attr(0750,daemon,daemon) /var/lib/hello-box
`

const helloInfo = "pkgname = hello-box\npkgbase = hello-box\npkgver = 1.0-1\npkgdesc = says hello\nbuilddate = 1700000000\npackager = a test\nsize = 100\narch = any\n"

// madeHello makes the package, and a repository of it, for each manager.
var madeHello = map[string]string{
	"dnf": `rpmbuild -bb --quiet --define "_topdir $PWD/rpm" hello.spec
mkdir repo && cp rpm/RPMS/noarch/*.rpm repo/ && createrepo_c -q repo
printf '[own]\nname=own\nbaseurl=file:///srv/repo\ngpgcheck=0\n' >own.repo
mkdir -p root/etc/yum.repos.d root/srv && cp own.repo root/etc/yum.repos.d/ && cp -r repo root/srv/repo`,
	"pacman": `mkdir -p tree/usr/bin repo one/hello-box-1.0-1
printf '#!/bin/sh\necho hello\n' >tree/usr/bin/hello-box && chmod 755 tree/usr/bin/hello-box
cp hello.info tree/.PKGINFO
file=hello-box-1.0-1-any.pkg.tar.zst
tar -C tree --zstd -cf repo/$file .PKGINFO usr
printf '%%FILENAME%%\n%s\n\n%%NAME%%\nhello-box\n\n%%VERSION%%\n1.0-1\n\n%%CSIZE%%\n%s\n\n%%ISIZE%%\n100\n\n%%SHA256SUM%%\n%s\n\n%%ARCH%%\nany\n\n' \
	$file $(stat -c %s repo/$file) $(sha256sum repo/$file | cut -d ' ' -f 1) >one/hello-box-1.0-1/desc
tar -C one -czf repo/own.db hello-box-1.0-1
mkdir -p root/srv && cp -r repo root/srv/repo
printf '[options]\nArchitecture = auto\nSigLevel = Never\n[own]\nServer = file:///srv/repo\n' >root/etc/pacman.conf`,
}

// TestManagers has the real dnf and pacman of an image install: as a human asks for
// it, as the configuration does, and as a program inside does.
func TestManagers(t *testing.T) {
	archive := os.Getenv("LITTERBOX_TEST_PACKAGES")
	if archive == "" {
		t.Skip("it needs a root file system with dnf and pacman: make test-packages")
	}
	for name, typed := range map[string]string{"dnf": "dnf install -y hello-box", "pacman": "pacman -S --noconfirm hello-box"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			shell := func(script string) {
				t.Helper()
				command := exec.Command("/bin/sh", "-euc", script)
				command.Dir = dir
				if out, err := command.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			for file, content := range map[string]string{"hello.spec": helloSpec, "hello.info": helloInfo} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			shell("mkdir root && tar -xf '" + archive + "' --exclude='./dev/*' -C root\ncd root/usr/bin\nrm -f apt-get " +
				map[string]string{"dnf": "pacman", "pacman": "dnf"}[name])
			shell(madeHello[name])

			h := built.New(t)
			configure(h, filepath.Join(dir, "root"))
			check := func(sandbox string) {
				t.Helper()
				if got := inside(h, sandbox, "hello-box"); got != "hello" {
					t.Errorf("in %s: %q", sandbox, got)
				}
				if name != "dnf" {
					return
				}
				if got := inside(h, sandbox, "cat /var/lib/hello-box/state; find /usr/bin/hello-other -perm /6000"); got != "began" {
					t.Errorf("in %s, of a script and a bit: %q", sandbox, got)
				}
			}
			h.Must("create", "human")
			h.Must("install", "human", "hello-box")
			check("human")
			h.Must("stop", "human")
			check("human")
			h.Must("fork", "human", "copy")
			check("copy")

			h.Must("create", "program")
			inside(h, "program", typed)
			check("program")

			h.Must("create", "file")
			files, err := filepath.Glob(filepath.Join(dir, "repo", "hello-box*"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			h.Must("install", "file", files[0])
			check("file")

			config := filepath.Join(h.Home, ".config/litterbox/config.toml")
			content, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			h.Put(config, string(content)+"container.packages = [\"hello-box\"]\n")
			h.Must("create", "configured")
			check("configured")
			if got := h.Litterbox("install", "human", "no-such-package"); got.Code == 0 || !strings.Contains(got.Stderr, name+" exited") {
				t.Errorf("a package that is not there: %+v", got)
			}
		})
	}
}
