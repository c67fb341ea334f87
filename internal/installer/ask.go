package installer

import "strings"

// harmless are options that change nothing here: nothing is asked, and recommended
// packages stay out.
var harmless = [...]string{
	"-y", "--yes", "--assume-yes", "-q", "-qq", "--quiet", "-f", "--fix-broken", "--no-install-recommends", "--no-install-suggests",
	"-V", "--verbose-versions", "-u", "--show-upgraded", "--no-show-upgraded", "--fix-missing", "-m",
}

// Order is what a command line asks for.
type Order struct {
	Update   bool     // only the lists of packages
	Packages []string // to install; none with Update
}

// Read reads the arguments of apt-get. ok is false when they ask for something else
// than to install packages by name, with options that matter.
func Read(args []string) (order Order, ok bool) {
	verb := ""
	for n := 0; n < len(args); n++ {
		switch one := args[n]; {
		case one == "-o" || one == "--option":
			if n++; n < len(args) && isElsewhere(args[n]) {
				return Order{}, false
			}
		case strings.HasPrefix(one, "-o") || strings.HasPrefix(one, "--option="):
			if isElsewhere(strings.TrimPrefix(strings.TrimPrefix(one, "--option="), "-o")) {
				return Order{}, false
			}
		case strings.HasPrefix(one, "-q="):
		case strings.HasPrefix(one, "-"):
			if !isHarmless(one) {
				return Order{}, false
			}
		case verb == "":
			verb = one
		case strings.HasPrefix(one, ".") || strings.HasPrefix(one, "/") || strings.HasSuffix(one, ".deb"):
			return Order{}, false // a file
		default:
			order.Packages = append(order.Packages, one)
		}
	}
	order.Update = verb == "update"
	return order, order.Update && len(order.Packages) == 0 || verb == "install" && len(order.Packages) > 0
}

// isElsewhere reports whether a setting of apt moves its records or its sources,
// or installs into another root. Others do not enter the place where it works.
func isElsewhere(setting string) bool {
	name, _, _ := strings.Cut(setting, "=")
	return strings.HasPrefix(strings.ToLower(name), "dir") || strings.EqualFold(name, "RootDir")
}

func isHarmless(option string) bool {
	for _, one := range harmless {
		if one == option {
			return true
		}
	}
	return false
}
