package posture_test

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// processLimits are the limits that no control group keeps here, as proc(5)
// shows them; litterbox says which those are.
func processLimits(t *testing.T, h *program.Host, outside report) map[string]string {
	t.Helper()
	var said struct {
		Limits []struct{ Name, Value, By string }
	}
	if err := json.Unmarshal([]byte(h.Must("limits", box, "--json")), &said); err != nil {
		t.Fatal(err)
	}
	rows := map[string][2]string{"pids": {"Max processes", "processes"}, "open-files": {"Max open files", "files"}}
	limits := map[string]string{}
	for _, limit := range said.Limits {
		if row, ok := rows[limit.Name]; ok && limit.By == "rlimit" {
			limits[row[0]] = limit.Value + " " + limit.Value + " " + row[1]
		}
	}
	// What the kernel counts by user, of which a sandbox may have a quarter.
	for _, name := range []string{"Max pending signals", "Max msgqueue size", "Max locked memory"} {
		fields := strings.Fields(outside.Limits[name]) // soft, hard, unit
		most, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue // unlimited
		}
		soft := most / 4
		if own, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
			soft = min(soft, own)
		}
		limits[name] = strings.Join([]string{strconv.FormatInt(soft, 10), strconv.FormatInt(most/4, 10), fields[2]}, " ")
	}
	return limits
}

// userLimits are those of the sandbox's user namespace, in which no further
// namespace can be made.
func userLimits(outside report) map[string]string {
	limits := map[string]string{}
	for name := range outside.UserLimits {
		limits[name] = "0"
	}
	for name, first := range map[string]string{"max_inotify_instances": "max_user_instances", "max_inotify_watches": "max_user_watches"} {
		data, err := os.ReadFile("/proc/sys/fs/inotify/" + first)
		if err != nil || limits[name] == "" {
			continue
		}
		most, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if own, err := strconv.ParseInt(outside.UserLimits[name], 10, 64); err == nil {
			most = min(most, own)
		}
		limits[name] = strconv.FormatInt(max(most/4, min(most, 8)), 10)
	}
	return limits
}

// ground is the machine that places run on: this one, or another.
type ground struct {
	outside  report // the probe's report there, outside every sandbox
	uid, gid int    // of the outpost that makes places, or of the user who runs litterbox
	name     string // of the inner user
	// exists and directory look for a path there.
	exists, directory func(path string) bool

	roots    []string // files of trusted roots
	lent     []string // files that this machine lends the place, if that is elsewhere
	commands []string // the names of the programs inside
	state    string   // a path on the disk of the state directory
	program  string   // our program
	search   []string // PATH
	install  string   // the directory of what apt-get is inside; "" without apt
}

// here returns this machine, used by the user who runs the test.
func here(h *program.Host, outside report) ground {
	g := ground{
		outside: outside, uid: os.Geteuid(), gid: os.Getegid(), name: "litterbox", roots: append(bundles(), ownRoots, allRoots), commands: []string{"litterbox", "probe"}, state: h.State, program: h.Program("litterbox"), search: filepath.SplitList(os.Getenv("PATH")),
		exists: func(path string) bool {
			_, err := os.Lstat(path)
			return err == nil
		},
		directory: func(path string) bool {
			info, err := os.Lstat(path)
			return err == nil && info.IsDir()
		},
	}
	if g.exists("/usr/bin/apt-get") {
		g.install = "/var/lib/litterbox/install"
	}
	if me, err := user.Current(); err == nil && g.uid != 0 {
		g.name = me.Username
	}
	return g
}

// expected returns the posture of a sandbox there.
func expected(t *testing.T, h *program.Host, g ground) posture {
	t.Helper()
	outside, uid, gid := g.outside, g.uid, g.gid
	// An ordinary user cannot leave groups (user_namespaces(7): setgroups is
	// denied), and inside they have no number of their own.
	groups := strings.Fields(outside.Status["Groups"])
	for i, group := range groups {
		if group != strconv.Itoa(gid) {
			groups[i] = "65534"
		}
	}
	maps := []string{ids(uid, uid), ids(gid, gid), "deny"}
	if uid == 0 {
		uid, gid, groups = 1000, 1000, nil
		maps = []string{"1000 shifted 1", "1000 shifted 1", "allow"} // setgroups(2) was needed, and is denied by now
	}
	p := posture{
		IDs: map[string]string{"Uid": four(uid), "Gid": four(gid), "Groups": strings.Join(groups, " "), "TracerPid": "0"},
		Capabilities: map[string]string{
			"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		},
		// The second filter is the one that asks about renames.
		Locks: map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": filters(outside, 2)},
		Umask: "0022",
		Namespaces: map[string]string{
			"cgroup": "own", "ipc": "own", "mnt": "own", "net": "own", "pid": "own", "pid_for_children": "own",
			"user": "own", "uts": "own",
			// Clocks are not hidden: builds compare times with the host's.
			"time": "parent's", "time_for_children": "parent's",
		},
		Maps:        maps,
		Mounts:      mounts(h, g),
		Descriptors: []string{"0 pipe", "1 pipe", "2 pipe"},
		PID1: map[string]string{
			"fd": "denied", "root": "denied", "cwd": "denied", "exe": "denied", "environ": "denied", "maps": "denied",
			// CAP_BLOCK_SUSPEND, which its children lack (internal/guest/overlay/others_linux.go).
			"CapInh": none, "CapPrm": "0000001000000000", "CapEff": none, "CapBnd": none, "CapAmb": none,
			"NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": filters(outside, 1),
		},
		Limits:     processLimits(t, h, outside),
		PID1Limits: processLimits(t, h, outside),
		UserLimits: userLimits(outside),
		Env: map[string]string{
			"HOME": h.Home, "USER": g.name, "LOGNAME": g.name, "SHELL": "/bin/sh", "LITTERBOX": box, "PWD": h.Repo,
			"PATH": search(h, g), "LANG": "C.UTF-8", "TERM": "dumb", "npm_config_update_notifier": "false",
		},
		Root:       root(h, g),
		Devices:    []string{"core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"},
		Interfaces: []string{"lo"},
		Processes:  g.commands,
		Cgroup:     cgroups(outside.Cgroup),
		Directory:  h.Repo,
		Hostname:   box,
	}
	if g.install != "" {
		p.Env["PATH"] = g.install + ":" + p.Env["PATH"]
	}
	if len(g.roots) > 0 {
		p.Env["NODE_EXTRA_CA_CERTS"] = ownRoots
	}
	if slices.Contains(g.roots, ownRoots) && len(bundles()) > 0 {
		p.Env["SSL_CERT_FILE"], p.Env["DENO_CERT"] = "/var/lib/litterbox/roots.pem", "/var/lib/litterbox/roots.pem"
	}
	return p
}

// ownRoots is the file of the sandbox's own root, allRoots that of all.
const (
	ownRoots = "/var/lib/litterbox/roots-own.pem"
	allRoots = "/var/lib/litterbox/roots.pem"
)

// etc is /etc: an overlay, but where files are mounted below it.
func etc(outside report) string {
	for _, mount := range outside.Mounts {
		if strings.HasPrefix(mount, "/etc/") {
			return "tmpfs ro nosuid nodev noexec"
		}
	}
	return "overlay ro nosuid nodev"
}

// readOnly are the options of a directory that is shown: its own, and ours.
func readOnly(outside report, dir string) string {
	if strings.Contains(deviceOptions(outside, dir), "noexec") {
		return "ro nosuid nodev noexec"
	}
	return "ro nosuid nodev"
}

// bundles returns the host's files of trusted roots, which the sandbox replaces
// with its own.
func bundles() []string {
	var found []string
	for _, path := range []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if path, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	return found
}

// filters is how many there are above those of what the place stands on.
func filters(outside report, more int) string {
	before, _ := strconv.Atoi(outside.Status["Seccomp_filters"]) // a machine without filters
	return strconv.Itoa(before + more)
}

const none = "0000000000000000"

func ids(inner, outer int) string { return strconv.Itoa(inner) + " " + strconv.Itoa(outer) + " 1" }

func four(id int) string {
	one := strconv.Itoa(id)
	return strings.Join([]string{one, one, one, one}, " ")
}

// cgroups returns what a process at the root of its own cgroup namespace sees.
func cgroups(outside string) string {
	var lines []string
	for _, line := range strings.Split(outside, "\n") {
		controllers, _, _ := cutLast(line, ":")
		lines = append(lines, controllers+":/")
	}
	return strings.Join(lines, "\n")
}

func cutLast(text, separator string) (before, after string, ok bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// system are the host's directories that a sandbox sees, if they exist.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32", "/opt", "/nix", "/gnu"}

func root(h *program.Host, g ground) []string {
	entries := []string{".litterbox", "dev", "etc", "media", "mnt", "proc", "run", "srv", "sys", "tmp", "var"}
	for _, dir := range system {
		if g.exists(dir) {
			entries = append(entries, strings.TrimPrefix(dir, "/"))
		}
	}
	for _, path := range []string{h.Home, h.Repo} {
		entries = append(entries, strings.Split(path, "/")[1])
	}
	slices.Sort(entries)
	return slices.Compact(entries)
}

// mounts returns every mount of a sandbox there.
func mounts(h *program.Host, g ground) []string {
	outside := g.outside
	var list []string
	types := map[string]string{} // of the host, by mount point
	for _, mount := range outside.Mounts {
		fields := strings.Fields(mount)
		types[fields[0]] = fields[2]
	}
	// A directory of the host comes with everything mounted below it.
	shown := func(dir string) {
		list = append(list, dir+" "+typeOf(types, dir)+" "+readOnly(outside, dir))
		for point, kind := range types {
			if strings.HasPrefix(point, dir+"/") {
				list = append(list, point+" "+kind+" ro nosuid nodev")
			}
		}
	}
	for _, dir := range system {
		if g.directory(dir) {
			shown(dir)
		}
	}
	for _, dir := range []string{"/sys/devices/system/cpu", "/sys/devices/system/node"} {
		if g.directory(dir) {
			shown(dir)
		}
	}
	state := typeOf(types, g.state)
	list = append(list,
		"/ tmpfs ro nosuid nodev", "/etc "+etc(outside),
		"/dev tmpfs rw nosuid noexec", "/dev/shm tmpfs rw nosuid nodev", "/dev/pts devpts rw nosuid noexec",
		"/run tmpfs rw nosuid nodev", "/tmp "+state+" rw nosuid nodev", "/var/tmp "+state+" rw nosuid nodev",
		h.Home+" "+state+" rw nosuid nodev", h.Repo+" overlay rw nosuid nodev",
		"/proc proc rw nosuid nodev noexec",
		// The source from which git inside learns the changed files.
		"/.litterbox/changes "+state+" ro nosuid nodev noexec",
		"/.litterbox/git "+state+" ro nosuid nodev noexec",
		"/.litterbox/git-fsmonitor "+typeOf(types, g.program)+" ro nosuid nodev",
	)
	for _, roots := range g.roots {
		list = append(list, roots+" "+state+" ro nosuid nodev")
	}
	for _, file := range g.lent {
		list = append(list, file+" "+state+" ro nosuid nodev")
	}
	if g.install != "" {
		list = append(list, g.install+" "+state+" ro nosuid nodev")
	}
	devices := typeOf(types, "/dev/null")
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		list = append(list, "/dev/"+device+" "+typeOf(types, "/dev/"+device)+" "+deviceOptions(outside, "/dev/"+device))
	}
	for _, name := range []string{"bus", "fs", "irq", "sys", "sysrq-trigger", "driver", "tty"} {
		if _, err := os.Lstat("/proc/" + name); err == nil {
			list = append(list, "/proc/"+name+" proc ro nosuid nodev noexec")
		}
	}
	for _, name := range []string{
		"acpi", "asound", "interrupts", "kcore", "keys", "key-users", "kallsyms", "kmsg", "latency_stats", "sched_debug",
		"scsi", "sysvipc", "timer_list", "timer_stats", "vmallocinfo", "kpagecount", "kpageflags", "kpagecgroup", "dynamic_debug",
	} {
		info, err := os.Lstat("/proc/" + name)
		switch {
		case err != nil:
		case info.IsDir():
			list = append(list, "/proc/"+name+" tmpfs ro nosuid nodev noexec")
		default:
			list = append(list, "/proc/"+name+" "+devices+" "+deviceOptions(outside, "/dev/null"))
		}
	}
	slices.Sort(list)
	return list
}

// typeOf returns the type of the file system that holds a path on the host.
func typeOf(types map[string]string, path string) string {
	for dir := path; ; dir = filepath.Dir(dir) {
		if kind, ok := types[dir]; ok {
			return kind
		}
		if dir == "/" {
			return "none"
		}
	}
}

// deviceOptions returns those of the host's own mount: a bound device node keeps them.
func deviceOptions(outside report, path string) string {
	best, options := "", ""
	for _, mount := range outside.Mounts {
		fields := strings.Fields(mount)
		if (path == fields[0] || strings.HasPrefix(path, strings.TrimSuffix(fields[0], "/")+"/")) && len(fields[0]) >= len(best) {
			best = fields[0]
			_, options, _ = strings.Cut(normalMount(mount), " "+fields[2]+" ")
		}
	}
	return options
}

// search returns PATH inside: the host's directories that exist there, and the
// system's.
func search(h *program.Host, g ground) string {
	var entries []string
	add := func(dir string) {
		if !slices.Contains(entries, dir) {
			entries = append(entries, dir)
		}
	}
	for _, dir := range g.search {
		for _, shown := range []string{"/usr", "/opt", "/bin", "/sbin", "/nix", "/gnu"} {
			if dir = filepath.Clean(dir); dir == shown || strings.HasPrefix(dir, shown+"/") {
				add(dir)
			}
		}
	}
	add(filepath.Join(h.Home, ".local/bin"))
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		add(dir)
	}
	return strings.Join(entries, ":")
}
