package installer

import (
	"slices"
	"strings"
)

// ReadFor reads the arguments of a package manager, as [Read] does those of apt-get.
func ReadFor(manager string, args []string) (order Order, ok bool) {
	switch manager {
	case "dnf":
		return readDnf(args)
	case "pacman":
		return readPacman(args)
	case "apk":
		return readApk(args)
	}
	return Read(args)
}

func readDnf(args []string) (order Order, ok bool) {
	verb := ""
	for _, one := range args {
		switch {
		case slices.Contains([]string{"-y", "--assumeyes", "-q", "--quiet", "-v", "--verbose", "--best", "--nobest", "--refresh", "--allowerasing", "--nodocs",
			"--setopt=install_weak_deps=False", "--setopt=install_weak_deps=0", "--setopt=install_weak_deps=false", "--setopt=tsflags=nodocs"}, one):
		case strings.HasPrefix(one, "-"):
			return Order{}, false
		case verb == "":
			verb = one
		case isFile(one, ".rpm"):
			return Order{}, false
		default:
			order.Packages = append(order.Packages, one)
		}
	}
	order.Update = verb == "makecache"
	return order, order.Update && len(order.Packages) == 0 || verb == "install" && len(order.Packages) > 0
}

// readPacman takes -S with names; -Sy without names only fetches lists.
func readPacman(args []string) (order Order, ok bool) {
	sync, lists := false, false
	for _, one := range args {
		switch {
		case slices.Contains([]string{"--noconfirm", "--needed", "--noprogressbar", "-q", "--quiet", "-v", "--verbose"}, one):
		case one == "--sync":
			sync = true
		case one == "--refresh" || one == "-y" || one == "-yy":
			lists = true
		case strings.HasPrefix(one, "-S") && strings.Trim(one[2:], "yq") == "":
			sync, lists = true, lists || strings.Contains(one, "y")
		case strings.HasPrefix(one, "-") || isFile(one, ".pkg.tar.zst"):
			return Order{}, false
		default:
			order.Packages = append(order.Packages, one)
		}
	}
	order.Update = sync && lists && len(order.Packages) == 0
	return order, order.Update || sync && len(order.Packages) > 0
}

// readApk takes add with names; a name may end in a version, and begins with no mark
// of a conflict.
func readApk(args []string) (order Order, ok bool) {
	verb := ""
	for _, one := range args {
		switch {
		case slices.Contains([]string{"-q", "--quiet", "-v", "--verbose", "-U", "--update-cache", "--no-cache", "--no-progress", "--no-interactive", "--latest", "-l"}, one):
		case strings.HasPrefix(one, "-") || strings.HasPrefix(one, "!"):
			return Order{}, false
		case verb == "":
			verb = one
		case isFile(one, ".apk"):
			return Order{}, false
		default:
			order.Packages = append(order.Packages, one)
		}
	}
	order.Update = verb == "update"
	return order, order.Update && len(order.Packages) == 0 || verb == "add" && len(order.Packages) > 0
}

func isFile(name, suffix string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, suffix)
}
