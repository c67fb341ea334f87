package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/image"
)

// wrong makes a problem at a value.
func wrong(v value, hint, format string, args ...any) []problem {
	return []problem{{position: v.position, text: fmt.Sprintf(format, args...), hint: hint}}
}

func checkCommand(v value) []problem { return checkCommandOf("container.setup-command", v) }

// checkCommandOf is checkCommand for the key of that name.
func checkCommandOf(name string, v value) []problem {
	if len(v.items) > 0 && v.items[0].text == "" {
		return wrong(v.items[0], "", "the command of %s is empty", name)
	}
	for _, item := range v.items {
		if strings.ContainsRune(item.text, 0) {
			return wrong(item, "", "an argument of %s holds a NUL byte", name)
		}
	}
	return nil
}

// checkEnvironment allows the names that a POSIX shell can use.
func checkEnvironment(v value) []problem {
	var problems []problem
	for _, entry := range v.items {
		name := strings.TrimLeft(entry.name, "0123456789")
		rest := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
		if name == "" || name != entry.name || rest != "" {
			problems = append(problems, wrong(entry, "", "%q is not a name for an environment variable", entry.name)...)
		}
		if strings.ContainsRune(entry.text, 0) {
			problems = append(problems, wrong(entry, "", "the value of container.env.%s holds a NUL byte", dotted([]string{entry.name}))...)
		}
	}
	return problems
}

// checkBaseImage wants what image.Parse reads.
func checkBaseImage(v value) []problem {
	if _, err := image.Parse(v.text); err != nil {
		return wrong(v, printable(fault.HintOf(err)), "%s", err.Error())
	}
	return nil
}

// checkRuntime refuses what cannot be the name of an engine's runtime. Only the
// engine knows which exist.
func checkRuntime(v value) []problem {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if v.text != "" && len(v.text) <= 128 && strings.Contains(letters, v.text[:1]) && strings.Trim(v.text, letters+"-_.") == "" {
		return nil
	}
	return wrong(v, `runtime = "runsc"`, "container.runtime must be a name as docker info lists them, not %q", v.text)
}

// checkCaches wants names of the caches of a kind.
func checkCaches(v value, kind string, names []string) []problem {
	var problems []problem
	for _, item := range v.items {
		if !slices.Contains(names, item.text) {
			problems = append(problems, wrong(item, kind+`-caches = ["`+strings.Join(names, `", "`)+`"]`,
				"there is no %s cache %q", kind, item.text)...)
		}
	}
	return problems
}

func checkEditors(v value, names []string) []problem {
	var problems []problem
	for _, item := range v.items {
		if !slices.Contains(names, item.text) {
			problems = append(problems, wrong(item, `cache = ["`+strings.Join(names, `", "`)+`"]`,
				"there are no servers of an editor %q", item.text)...)
		}
	}
	return problems
}

// packageName is compiled when a package is named: most commands name none.
var packageName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._-]*(:[a-z0-9-]+)?(=[A-Za-z0-9.+:~-]+|/[A-Za-z0-9.+~-]+)?$`)
})

// IsPackage reports whether a package manager takes name for a package, for apt with
// an architecture, a version or a suite, and not for an option.
func IsPackage(name string) bool { return packageName().MatchString(name) }

func checkPackages(v value) []problem {
	var problems []problem
	for _, item := range v.items {
		if !IsPackage(item.text) {
			problems = append(problems, wrong(item, `packages = ["ripgrep", "jq=1.6-2.1"]`, "%q is not a package name", item.text)...)
		}
	}
	return problems
}

// maxPrefix leaves room for the name in a path component of 255 bytes, with git's
// ".lock" after it.
const maxPrefix = 128

// checkPrefix wants a prefix that makes a valid branch out of every sandbox
// name (git-check-ref-format(1)). Names are letters, digits and inner dashes,
// so "lock" is the one that can complete something forbidden.
func checkPrefix(v value) []problem {
	for _, name := range []string{"x", "lock"} {
		if why := badBranch(v.text + name); why != "" {
			return wrong(v, `branch-prefix = "agent/"`, "git.branch-prefix %q does not make a branch name: %s", v.text, why)
		}
	}
	if len(v.text) > maxPrefix {
		return wrong(v, "", "git.branch-prefix is longer than %d bytes", maxPrefix)
	}
	return nil
}

// badBranch says why git would refuse a branch name; "" when it would not.
func badBranch(name string) string {
	switch {
	case strings.HasPrefix(name, "-"):
		return "it begins with a dash"
	case strings.HasPrefix(name, "refs/"):
		return `it begins with "refs/", which git puts in front itself`
	case strings.Contains(name, ".."):
		return `it holds ".."`
	case strings.Contains(name, "@{"):
		return `it holds "@{"`
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) {
			return fmt.Sprintf("it holds %q", r)
		}
		// git allows these; a listing that shows them would lie.
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("it holds %q, which cannot be seen", r)
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return "a part of it between slashes is empty"
		case strings.HasPrefix(part, "."):
			return "a part of it begins with a dot"
		case strings.HasSuffix(part, ".lock"):
			return `a part of it ends with ".lock"`
		}
	}
	return ""
}

// readPaths cleans the paths of mounts. The driver judges, at the time of the
// mount, where symbolic links in a path lead.
func readPaths(v value) ([]string, []problem) {
	var paths []string
	var problems []problem
	seen := map[string]bool{}
	for _, item := range v.items {
		clean, why := cleanPath(item.text)
		if why == "" && seen[clean] {
			why = "it is listed twice"
		}
		if why != "" {
			problems = append(problems, wrong(item, "", "cannot mount %q: %s", item.text, why)...)
			continue
		}
		seen[clean] = true
		paths = append(paths, clean)
	}
	return paths, problems
}

// notOfTheSystem refuses directories that the machine itself runs from.
func notOfTheSystem(v value) []problem {
	var problems []problem
	for _, item := range v.items {
		clean := path.Clean(item.text)
		for _, system := range []string{"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/run", "/sbin", "/usr", "/var/run", "/var/spool"} {
			if clean == system || strings.HasPrefix(clean, system+"/") {
				problems = append(problems, wrong(item, "", "cannot share %q: %s belongs to the system", item.text, system)...)
			}
		}
		if clean == "/var" || clean == "/home" || clean == "/root" {
			problems = append(problems, wrong(item, "", "cannot share %q: it holds more than one directory to share", item.text)...)
		}
	}
	return problems
}

func cleanPath(typed string) (clean, why string) {
	rest, home := strings.CutPrefix(typed, "~/")
	switch {
	case !home && !path.IsAbs(typed):
		return "", "it is neither absolute nor begins with ~/"
	case strings.ContainsFunc(typed, unicode.IsControl):
		return "", "it holds a control character"
	case slices.Contains(strings.Split(typed, "/"), ".."):
		return "", `it holds ".."`
	}
	if home {
		if clean = path.Join("~", rest); clean == "~" {
			return "", "it is the whole home directory; name what is needed of it"
		}
		return clean, ""
	}
	clean = path.Clean(typed)
	if clean == "/" {
		return "", "it is the whole host"
	}
	for _, system := range []string{"/proc", "/sys", "/dev"} {
		if clean == system || strings.HasPrefix(clean, system+"/") {
			return "", "a sandbox has its own " + system
		}
	}
	return clean, ""
}

// readPatterns cleans the patterns of copy.
func readPatterns(v value) ([]string, []problem) {
	var patterns []string
	var problems []problem
	for _, item := range v.items {
		clean := path.Clean(item.text)
		_, malformed := path.Match(clean, "")
		why := ""
		switch {
		case item.text == "" || clean == ".":
			why = "it names the whole repository"
		case path.IsAbs(clean), slices.Contains(strings.Split(item.text, "/"), ".."):
			why = "it leaves the repository"
		case slices.ContainsFunc(strings.Split(clean, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }):
			why = "it names git's own directory"
		case strings.ContainsFunc(item.text, unicode.IsControl):
			why = "it holds a control character"
		case malformed != nil:
			why = "its brackets or backslashes are incomplete"
		}
		if why != "" {
			problems = append(problems, wrong(item, `copy = ["config/local.test"]`, "cannot copy %q: %s", item.text, why)...)
			continue
		}
		patterns = append(patterns, clean)
	}
	return union(nil, patterns), problems
}

func checkDurability(v value) []problem {
	if d := Durability(v.text); d == Normal || d == Strict {
		return nil
	}
	return wrong(v, `durability = "strict"`, "durability must be %q or %q, not %q", Normal, Strict, v.text)
}

// checkDriver refuses what cannot be the name of a driver. Which drivers exist
// depends on the program.
func checkDriver(v value) []problem {
	if v.text != "" && strings.Trim(v.text, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
		return nil
	}
	return wrong(v, `driver = "namespace"`, "driver must be a name as litterbox doctor lists them, not %q", v.text)
}

func checkMachine(v value) []problem {
	if v.text != "" && !strings.HasPrefix(v.text, "-") && strings.Trim(v.text, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
		return nil
	}
	return wrong(v, `machine = "build-host"`, "machine must be a name as litterbox machine list shows them, not %q", v.text)
}

func checkHistory(v value) []problem {
	switch v.text {
	case HistorySteps, HistoryMilestones, HistoryOne:
		return nil
	}
	return wrong(v, `history = "one"`, "git.history must be %q, %q or %q, not %q", HistorySteps, HistoryMilestones, HistoryOne, v.text)
}
