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

// expected is what a sandbox holds on this machine, run by this user.
func expected(t *testing.T, h *program.Host, outside report) posture {
	t.Helper()
	uid, gid, name := os.Geteuid(), os.Getegid(), "litterbox"
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
	} else if me, err := user.Current(); err == nil {
		name = me.Username
	}
	p := posture{
		IDs: map[string]string{"Uid": four(uid), "Gid": four(gid), "Groups": strings.Join(groups, " "), "TracerPid": "0"},
		Capabilities: map[string]string{
			"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		},
		// The second filter is the one that asks about renames.
		Locks: map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "2"},
		Umask: "0022",
		Namespaces: map[string]string{
			"cgroup": "own", "ipc": "own", "mnt": "own", "net": "own", "pid": "own", "pid_for_children": "own",
			"user": "own", "uts": "own",
			// Clocks are not hidden: builds compare times with the host's.
			"time": "parent's", "time_for_children": "parent's",
		},
		Maps:        maps,
		Mounts:      mounts(t, h, outside),
		Descriptors: []string{"0 pipe", "1 pipe", "2 pipe"},
		PID1: map[string]string{
			"fd": "denied", "root": "denied", "cwd": "denied", "exe": "denied", "environ": "denied", "maps": "denied",
			// CAP_BLOCK_SUSPEND, which its children lack (internal/guest/overlay/others_linux.go).
			"CapInh": none, "CapPrm": "0000001000000000", "CapEff": none, "CapBnd": none, "CapAmb": none,
			"NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "1",
		},
		Limits:     processLimits(t, h, outside),
		PID1Limits: processLimits(t, h, outside),
		UserLimits: userLimits(outside),
		Env: map[string]string{
			"HOME": h.Home, "USER": name, "LOGNAME": name, "SHELL": "/bin/sh", "LITTERBOX": box, "PWD": h.Repo,
			"PATH": search(h), "LANG": "C.UTF-8", "TERM": "dumb", "NODE_EXTRA_CA_CERTS": "/var/lib/litterbox/roots-own.pem",
		},
		Root:       root(h),
		Devices:    []string{"core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"},
		Interfaces: []string{"lo"},
		Processes:  []string{"litterbox", "probe"},
		Cgroup:     cgroups(outside.Cgroup),
		Directory:  h.Repo,
		Hostname:   box,
	}
	if len(bundles()) > 0 {
		p.Env["SSL_CERT_FILE"], p.Env["DENO_CERT"] = "/var/lib/litterbox/roots.pem", "/var/lib/litterbox/roots.pem"
	}
	return p
}

// bundles are the host's files of trusted roots, in whose place the sandbox has
// its own.
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

const none = "0000000000000000"

func ids(inner, outer int) string { return strconv.Itoa(inner) + " " + strconv.Itoa(outer) + " 1" }

func four(id int) string {
	one := strconv.Itoa(id)
	return strings.Join([]string{one, one, one, one}, " ")
}

// cgroups is what a process sees that is the root of its own cgroup namespace.
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

// system are the host's directories that a sandbox sees, where they exist.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32", "/opt", "/nix", "/gnu"}

func root(h *program.Host) []string {
	entries := []string{".litterbox", "dev", "etc", "media", "mnt", "proc", "run", "srv", "sys", "tmp", "var"}
	for _, dir := range system {
		if _, err := os.Lstat(dir); err == nil {
			entries = append(entries, strings.TrimPrefix(dir, "/"))
		}
	}
	for _, path := range []string{h.Home, h.Repo} {
		entries = append(entries, strings.Split(path, "/")[1])
	}
	slices.Sort(entries)
	return slices.Compact(entries)
}

// mounts is every mount of a sandbox on this machine.
func mounts(t *testing.T, h *program.Host, outside report) []string {
	t.Helper()
	var list []string
	types := map[string]string{} // of the host, by mount point
	for _, mount := range outside.Mounts {
		fields := strings.Fields(mount)
		types[fields[0]] = fields[2]
	}
	// What the host shows comes with everything that is mounted below it.
	shown := func(dir string) {
		list = append(list, dir+" "+typeOf(types, dir)+" ro nosuid nodev")
		for point, kind := range types {
			if strings.HasPrefix(point, dir+"/") {
				list = append(list, point+" "+kind+" ro nosuid nodev")
			}
		}
	}
	for _, dir := range system {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			shown(dir)
		}
	}
	for _, dir := range []string{"/sys/devices/system/cpu", "/sys/devices/system/node"} {
		if _, err := os.Stat(dir); err == nil {
			shown(dir)
		}
	}
	state := typeOf(types, h.State)
	list = append(list,
		"/ tmpfs ro nosuid nodev", "/etc overlay ro nosuid nodev",
		"/dev tmpfs rw nosuid noexec", "/dev/shm tmpfs rw nosuid nodev", "/dev/pts devpts rw nosuid noexec",
		"/run tmpfs rw nosuid nodev", "/tmp "+state+" rw nosuid nodev", "/var/tmp "+state+" rw nosuid nodev",
		h.Home+" "+state+" rw nosuid nodev", h.Repo+" overlay rw nosuid nodev",
		"/proc proc rw nosuid nodev noexec",
		// What git inside learns the changed files from.
		"/.litterbox/changes "+state+" ro nosuid nodev noexec",
		"/.litterbox/git "+state+" ro nosuid nodev noexec",
		"/.litterbox/git-fsmonitor "+typeOf(types, h.Program("litterbox"))+" ro nosuid nodev",
	)
	for _, roots := range append(bundles(), "/var/lib/litterbox/roots.pem", "/var/lib/litterbox/roots-own.pem") {
		list = append(list, roots+" "+state+" ro nosuid nodev")
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

// typeOf is the type of the file system that holds a path on the host.
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

// deviceOptions are those of the host's own mount: a device node that is bound
// keeps them.
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

// search is PATH inside: what of the host's exists there, and the system's.
func search(h *program.Host) string {
	var entries []string
	add := func(dir string) {
		if !slices.Contains(entries, dir) {
			entries = append(entries, dir)
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
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
