package engine

import (
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/image"
)

// manager is a package manager that litterbox runs in a place of its own.
type manager struct {
	name    string // of its preset, too
	program string // where it is; the first one that an image has counts
	suffix  string // of a file that is a package
	sources []string
	script  string // installs "$@", as root of the place
	look    string // shows whether a package can be had
	info    string // shows what a file holds
}

func managers() []manager {
	return []manager{
		{"apt", "/usr/bin/apt-get", ".deb", []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d"}, aptScript, "apt-cache policy", "dpkg-deb --info"},
		{"dnf", "/usr/bin/dnf", ".rpm", []string{"/etc/dnf/dnf.conf", "/etc/yum.repos.d"}, dnfScript, "dnf list", "rpm -qip"},
		{"pacman", "/usr/bin/pacman", ".pkg.tar.zst", []string{"/etc/pacman.conf", "/etc/pacman.d"}, pacmanScript, "pacman -Si", "pacman -Qip"},
		{"apk", "/sbin/apk", ".apk", []string{"/etc/apk/repositories", "/etc/apk/repositories.d"}, apkScript, "apk policy", "apk verify"},
	}
}

// managerOf is the package manager of an image, or of this machine: there only
// apt's packages can be kept apart from the machine's own.
func managerOf(layers []string) (manager, bool) {
	for _, one := range managers() {
		if (len(layers) > 0 || one.name == "apt") && image.Has(rooted(layers), one.program) {
			return one, true
		}
	}
	return manager{}, false
}

func rooted(layers []string) []string {
	if len(layers) == 0 {
		return []string{"/"}
	}
	return layers
}

// takes refuses files that are packages of another system.
func (m manager) takes(files []string) error {
	for _, file := range files {
		if !strings.HasSuffix(file, m.suffix) {
			return fault.New(fault.Invalid, "cannot install %q: %s takes files that end in %s", file, m.name, m.suffix).
				WithHint("%s %s", m.info, file)
		}
	}
	return nil
}

// packageFile is the kind of package that a file of that name is; "" if there is none.
func packageFile(name string) string {
	for _, one := range managers() {
		if strings.HasSuffix(name, one.suffix) {
			return one.suffix
		}
	}
	return ""
}

// dnfScript has dnf install "$@". Weak dependencies are left out, as apt's
// recommended packages are.
const dnfScript = `set -eu
umask 022
dnf -q -y --setopt=install_weak_deps=False --setopt=keepcache=False install "$@"
dnf -q clean all >/dev/null
`

// pacmanScript has pacman install "$@". Its own sandbox wants another user, and its
// scripts and hooks a root directory that can be changed: they do not run, so the one
// for libraries that nearly all packages need is made up for.
const pacmanScript = `set -eu
umask 022
alone=
if pacman --help --sync 2>/dev/null | grep -q -e --disable-sandbox; then alone=--disable-sandbox; fi
files= names=
for one; do
	case $one in /*) files=1 ;; *) names=1 ;; esac
done
if [ -n "$files" ] && [ -n "$names" ]; then
	echo "pacman installs files and packages by name in two steps" >&2
	exit 1
elif [ -n "$files" ]; then
	pacman -U --noconfirm --needed --noprogressbar $alone "$@"
else
	pacman -Sy --noconfirm --needed --noprogressbar $alone "$@"
fi
rm -f /var/cache/pacman/pkg/*
if command -v ldconfig >/dev/null; then ldconfig; fi
`

// apkScript has apk install "$@". A file has to be signed by a key of the image, as
// packages of its sources have to be: apk can only be told to trust both.
const apkScript = `set -eu
umask 022
apk add --no-cache --no-progress --wait 60 "$@"
`
