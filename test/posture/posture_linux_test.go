// Package posture starts a real sandbox and looks at what a process inside
// really has: everything that the kernel shows about it, compared as a whole
// with what should be there. So a new leak fails even if no one thought of it.
//
// What differs from machine to machine is normalised against a run of the
// same probe outside. Start reading at [expected].
package posture_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// built is set by TestMain before any test.
var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }, "test/posture/probe"))
}

// report is what the probe prints.
type report struct {
	Status, Namespaces, Descriptors, PID1, Limits map[string]string
	PID1Limits, UserLimits                        map[string]string
	UIDMap, GIDMap, SetGroups                     string
	Mounts, Env, Root, Devices                    []string
	Interfaces, Processes                         []string
	Cgroup, Directory, Hostname                   string
}

// posture is a report without the parts that may differ.
type posture struct {
	IDs          map[string]string // Uid and Gid: real, effective, saved, file system
	Capabilities map[string]string
	Locks        map[string]string // NoNewPrivs, Seccomp and its filters
	Umask        string
	Namespaces   map[string]string // "own", or "parent's"
	Maps         []string
	Mounts       []string
	Descriptors  []string
	PID1         map[string]string
	Limits       map[string]string // those that differ from the parent's
	PID1Limits   map[string]string // the same of PID 1
	UserLimits   map[string]string // of the user namespace
	Env          map[string]string
	Root         []string
	Devices      []string
	Interfaces   []string
	Processes    []string
	Cgroup       string
	Directory    string
	Hostname     string
}

const box = "posture"

func TestPosture(t *testing.T) {
	h := built.New(t)
	outside := look(t, h.Command(h.Repo, h.Program("probe")))
	h.Must("create", box)
	h.Must("cp", h.Program("probe"), box+":/tmp/probe")
	inside := look(t, h.Inside(box, "/tmp/probe"))
	if diff := cmp.Diff(expected(t, h, here(h, outside)), normalised(h, inside, outside)); diff != "" {
		t.Errorf("what a process holds (-want +got):\n%s", diff)
	}
}

// A reassembled place is no weaker.
func TestPostureAfterRestart(t *testing.T) {
	h := built.New(t)
	outside := look(t, h.Command(h.Repo, h.Program("probe")))
	h.Must("create", box)
	h.Must("cp", h.Program("probe"), box+":/tmp/probe")
	h.Must("stop", box)
	h.Must("start", box)
	inside := look(t, h.Inside(box, "/tmp/probe"))
	if diff := cmp.Diff(expected(t, h, here(h, outside)), normalised(h, inside, outside)); diff != "" {
		t.Errorf("what a process holds after stop and start (-want +got):\n%s", diff)
	}
}

// The comparison must see differences: outside nearly everything differs.
func TestPostureDiffersOutside(t *testing.T) {
	h := built.New(t)
	h.Must("create", box) // it says which limits to expect
	outside := look(t, h.Command(h.Repo, h.Program("probe")))
	want, got := expected(t, h, here(h, outside)), normalised(h, outside, outside)
	for name, same := range map[string]bool{
		"locks": cmp.Equal(want.Locks, got.Locks), "namespaces": cmp.Equal(want.Namespaces, got.Namespaces),
		"maps": cmp.Equal(want.Maps, got.Maps), "mounts": cmp.Equal(want.Mounts, got.Mounts), "environment": cmp.Equal(want.Env, got.Env),
		"processes": cmp.Equal(want.Processes, got.Processes), "root": cmp.Equal(want.Root, got.Root),
		"capabilities": cmp.Equal(want.Capabilities, got.Capabilities), "host name": want.Hostname == got.Hostname,
	} {
		if same {
			t.Errorf("the %s of this test are those of a sandbox: the comparison is blind", name)
		}
	}
}

// Every part of a posture belongs to an attack of the table, and the reverse.
func TestPostureIsInTheTable(t *testing.T) {
	var looks, fields []string
	for _, a := range threat.By(threat.Posture) {
		looks = append(looks, a.Looks...)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[posture]()) {
		fields = append(fields, field.Name)
	}
	slices.Sort(looks)
	slices.Sort(fields)
	if diff := cmp.Diff(fields, looks); diff != "" {
		t.Errorf("what is compared (-) and what rows in package threat look at (+):\n%s", diff)
	}
}

func look(t *testing.T, got program.Result) report {
	t.Helper()
	var r report
	if err := json.Unmarshal([]byte(got.Stdout), &r); err != nil {
		t.Fatalf("the probe exited %d and printed no report: %v\n%s%s", got.Code, err, got.Stdout, got.Stderr)
	}
	return r
}

func normalised(h *program.Host, inside, outside report) posture {
	p := posture{
		IDs:          pick(inside.Status, "Uid", "Gid", "Groups", "TracerPid"),
		Capabilities: pick(inside.Status, "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"),
		Locks:        pick(inside.Status, "NoNewPrivs", "Seccomp", "Seccomp_filters"),
		Umask:        inside.Status["Umask"],
		Namespaces:   map[string]string{},
		Maps:         []string{normalMap(inside.UIDMap), normalMap(inside.GIDMap), inside.SetGroups},
		PID1:         inside.PID1,
		Limits:       map[string]string{},
		PID1Limits:   map[string]string{},
		UserLimits:   inside.UserLimits,
		Env:          map[string]string{},
		Root:         inside.Root, Devices: inside.Devices, Interfaces: inside.Interfaces,
		Cgroup: inside.Cgroup, Directory: inside.Directory, Hostname: inside.Hostname,
	}
	for name, id := range inside.Namespaces {
		p.Namespaces[name] = "own"
		if outside.Namespaces[name] == id {
			p.Namespaces[name] = "parent's"
		}
	}
	for _, mount := range inside.Mounts {
		p.Mounts = append(p.Mounts, normalMount(mount))
	}
	slices.Sort(p.Mounts)
	for number, to := range inside.Descriptors {
		kind, _, _ := strings.Cut(to, ":")
		if strings.HasPrefix(to, "anon_inode:[event") || strings.HasPrefix(to, "/sys/fs/cgroup/") || strings.HasPrefix(to, "/proc/") {
			continue // the probe's own: its runtime's poller, and what it reads
		}
		p.Descriptors = append(p.Descriptors, number+" "+kind)
	}
	slices.Sort(p.Descriptors)
	for name, value := range inside.Limits {
		if outside.Limits[name] != value {
			p.Limits[name] = value
		}
	}
	for name, value := range inside.PID1Limits {
		if outside.Limits[name] != value {
			p.PID1Limits[name] = value
		}
	}
	for _, entry := range inside.Env {
		key, value, _ := strings.Cut(entry, "=")
		p.Env[key] = value
	}
	p.Processes = slices.Clone(inside.Processes)
	slices.Sort(p.Processes)
	return p
}

func pick(from map[string]string, names ...string) map[string]string {
	picked := map[string]string{}
	for _, name := range names {
		picked[name] = from[name]
	}
	return picked
}

// normalMap words an id map; ids from 0x70000000 on are those that the driver
// gives to one sandbox of root each.
func normalMap(text string) string {
	fields := strings.Fields(text)
	if len(fields) == 3 {
		if outer, err := strconv.Atoi(fields[1]); err == nil && outer >= 0x7000_0000 && outer < 0x7100_0000 {
			fields[1] = "shifted"
		}
	}
	return strings.Join(fields, " ")
}

// normalMount keeps a mount's place, its restrictions and its type.
func normalMount(line string) string {
	fields := strings.Fields(line)
	kept := []string{fields[0], fields[2]}
	for _, option := range strings.Split(fields[1], ",") {
		switch option {
		case "ro", "rw", "nosuid", "nodev", "noexec":
			kept = append(kept, option)
		}
	}
	return strings.Join(kept, " ")
}
