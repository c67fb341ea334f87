package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// tools returns the programs that tests use if installed, with the Debian
// package of each. Tests without theirs are skipped; .ci/run requires them all.
func tools() map[string]string {
	return map[string]string{
		"git": "git", "busybox": "busybox-static", "gcc": "gcc libc6-dev", "python3": "python3", "strace": "strace", "tar": "tar",
		"curl": "curl", "node": "nodejs", "npm": "npm", "go": "golang-go", "pip3": "python3-pip", "apt-get": "apt", "dpkg-deb": "dpkg",
		"ssh": "openssh-client", "scp": "openssh-client", "sftp": "openssh-client", "rsync": "rsync", "sshd": "openssh-server", "psql": "postgresql-client", "pg_isready": "postgresql-client",
		"postgres": "postgresql", "initdb": "postgresql", "redis-cli": "redis-tools", "redis-server": "redis-server",
		"iodine": "iodine", "iodined": "iodine", "dns2tcpc": "dns2tcp", "dns2tcpd": "dns2tcp", "dig": "bind9-dnsutils", "chromium": "chromium",
		"gnome-keyring-daemon": "gnome-keyring", "dbus-run-session": "dbus-daemon",
		"dockerd": "docker.io", "docker": "docker.io", "runc": "runc", "setpriv": "util-linux", "nsenter": "util-linux",
	}
}

// The disk space of a run: Go's build cache, twice if the race detector is
// used, and the tests' own files.
const diskNeeded = 12 << 30

// memoryNeeded is for as many packages as go test runs at once.
func memoryNeeded() int64 { return int64(min(runtime.GOMAXPROCS(0), 8)) << 30 }

// need prints what the tests need, what is missing, and what they took the last time.
func need(w io.Writer, last string) int {
	fmt.Fprintf(w, "== tests need about %d GiB of disk and %d GiB of memory\n", diskNeeded>>30, memoryNeeded()>>30)
	b := limits()
	fmt.Fprintf(w, "   each package may take %d GiB of memory, %d GiB of disk and %d MiB of output, and fails beyond that\n", b.memory>>30, b.disk>>30, b.output>>20)
	for what, dir := range map[string]string{"temporary files": os.TempDir(), "the build cache": goCache()} {
		if free, ok := freeAt(dir); ok && free < diskNeeded {
			fmt.Fprintf(w, "   %s: only %d MiB are free in %s\n", what, free>>20, dir)
		}
	}
	if free, ok := availableMemory(); ok && free < memoryNeeded() {
		fmt.Fprintf(w, "   only %d MiB of memory are available: try GOMAXPROCS=1\n", free>>20)
	}
	if all, err := read(last); err == nil && len(all) > 0 {
		sum := total(all)
		fmt.Fprintf(w, "   the last run took %s, and at most %d MiB of memory and %d MiB of disk in one package\n",
			elapsed(sum.Seconds), sum.Memory>>20, sum.Disk>>20)
	} else {
		fmt.Fprintln(w, "   how long they take is said after the first run: on two cores, half an hour and more")
	}
	missing, packages := absent(tools())
	if len(missing) > 0 {
		fmt.Fprintf(w, "   tests of these are skipped, they are not installed: %s\n", strings.Join(missing, " "))
		fmt.Fprintf(w, "   on Debian: apt-get install %s\n", strings.Join(packages, " "))
	}
	return 0
}

// absent lists the tools that are not installed and the packages that have them.
func absent(tools map[string]string) (missing, packages []string) {
	for name, of := range tools {
		_, err := exec.LookPath(name)
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // off the PATH in Debian
		if err != nil && len(found) == 0 {
			missing = append(missing, name)
			packages = append(packages, strings.Fields(of)...)
		}
	}
	slices.Sort(missing)
	slices.Sort(packages)
	return missing, slices.Compact(packages)
}

func goCache() string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return os.TempDir()
	}
	return strings.TrimSpace(string(out))
}

// left prints what the packages took, which of them exceeded a bound, and what
// they left.
func left(w io.Writer, report string) int {
	all, err := read(report)
	if err != nil {
		fmt.Fprintln(w, "== what the tests took is not known:", err)
		return 0
	}
	sum := total(all)
	fmt.Fprintf(w, "== %d packages took %s together, and at most %d MiB of memory, %d MiB of disk and %d KiB of output each\n",
		len(all), elapsed(sum.Seconds), sum.Memory>>20, sum.Disk>>20, sum.Output>>10)
	code := 0
	for _, one := range all {
		if one.Exceeded != "" {
			fmt.Fprintf(w, "   FAIL: %s %s\n", one.Package, one.Exceeded)
			code = 1
		}
		if len(one.Left) > 0 {
			fmt.Fprintf(w, "   %s left, and it was removed: %s\n", one.Package, strings.Join(one.Left, ", "))
		}
	}
	return code
}

// total returns the sum of the times and the maximum of everything else.
func total(all []taken) (sum taken) {
	for _, one := range all {
		sum.Seconds += one.Seconds
		sum.Memory, sum.Disk, sum.Output = max(sum.Memory, one.Memory), max(sum.Disk, one.Disk), max(sum.Output, one.Output)
	}
	return sum
}

func elapsed(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

func read(report string) ([]taken, error) {
	file, err := os.Open(report)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []taken
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one taken
		if err := json.Unmarshal(lines.Bytes(), &one); err == nil { // the last line may be cut off
			all = append(all, one)
		}
	}
	return all, nil
}
