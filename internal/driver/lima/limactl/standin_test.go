package limactl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// standIn is a limactl that runs a shell script.
func standIn(t *testing.T, script string) limactl.Client {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, limactl.Name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return limactl.Client{Env: []string{"PATH=" + dir + ":/usr/bin:/bin", "DIR=" + dir}}
}

// listed is a line of limactl 2.2.0, without the fields that are not read.
const listed = `{"name":"litterbox","hostname":"lima-litterbox","status":"Running","dir":"/home/a/.lima/litterbox","vmType":"qemu","arch":"x86_64","cpus":4,"memory":8589934592,"disk":32212254720,"sshLocalPort":45123,"sshConfigFile":"/home/a/.lima/litterbox/ssh.config","hostAgentPID":12,"driverPID":13,"config":{"vmType":"qemu","plain":true,"mounts":[],"ssh":{"localPort":0,"forwardAgent":false}},"sshAddress":"127.0.0.1","protected":false,"limaVersion":"2.2.0","HostOS":"linux"}`

func TestList(t *testing.T) {
	broken := `{"name":"other","hostname":"lima-other","status":"Broken","dir":"/home/a/.lima/other","vmType":"qemu","errors":["qemu driver is running but host agent is not"]}`
	c := standIn(t, "test \"$*\" = '--tty=false --log-format=json list --json' || exit 9\ncat <<'END'\n"+listed+"\n"+broken+"\nEND\n")
	got, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []limactl.Instance{
		{
			Name: "litterbox", Hostname: "lima-litterbox", Status: limactl.Running, Dir: "/home/a/.lima/litterbox", VMType: "qemu", Arch: "x86_64",
			CPUs: 4, Memory: 8 << 30, Disk: 30 << 30, SSHConfigFile: "/home/a/.lima/litterbox/ssh.config", SSHLocalPort: 45123, LimaVersion: "2.2.0",
			Config: limactl.Config{Plain: true},
		},
		{Name: "other", Hostname: "lima-other", Status: limactl.Broken, Dir: "/home/a/.lima/other", VMType: "qemu", Errors: []string{"qemu driver is running but host agent is not"}},
	}
	want[0].Config.Mounts = got[0].Config.Mounts[:0]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if one, err := c.Find(t.Context(), "other"); err != nil || one.Status != limactl.Broken {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := c.Find(t.Context(), "missing"); !errors.Is(err, limactl.ErrNoInstance) {
		t.Errorf("%v", err)
	}
}

// limactl's output is used as paths and arguments, so anything that cannot be
// an instance's is refused.
func TestListRefused(t *testing.T) {
	for name, line := range map[string]string{
		"an array":            "[" + listed + "]",
		"no JSON":             "litterbox Running",
		"cut off":             listed[:len(listed)-9],
		"two on a line":       listed + listed,
		"no name":             strings.Replace(listed, `"name":"litterbox"`, `"name":""`, 1),
		"a flag as a name":    strings.ReplaceAll(listed, "litterbox", "--force"),
		"a path as a name":    strings.Replace(listed, `"name":"litterbox"`, `"name":"../x"`, 1),
		"no status":           strings.Replace(listed, `"status":"Running",`, "", 1),
		"another directory":   strings.Replace(listed, `"dir":"/home/a/.lima/litterbox"`, `"dir":"/"`, 1),
		"a relative one":      strings.Replace(listed, `"dir":"/home`, `"dir":"home`, 1),
		"SSH from elsewhere":  strings.Replace(listed, "/litterbox/ssh.config", "/../ssh.config", 1),
		"no port":             strings.Replace(listed, "45123", "451234", 1),
		"a number as a text":  strings.Replace(listed, `"cpus":4`, `"cpus":"4"`, 1),
		"a number below zero": strings.Replace(listed, `"cpus":4`, `"cpus":-4`, 1),
	} {
		c := standIn(t, "cat <<'END'\n"+line+"\nEND\n")
		if got, err := c.List(t.Context()); !errors.Is(err, limactl.ErrStrange) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Each line is as limactl 2.2.0 logged it.
func TestFailures(t *testing.T) {
	fatal := func(msg string) string { return `{"level":"fatal","msg":"` + msg + `","time":"2026-11-23T14:53:38Z"}` }
	for _, test := range []struct {
		log  string
		want error
		hint string
	}{
		{"limactl: must not run as the root user", limactl.ErrRoot, "su USER"},
		{`time="2026-11-23T14:53:38Z" level=fatal msg="unknown command \"clone\" for \"limactl\""`, limactl.ErrTooOld, "limactl --version"},
		{fatal("instance `box` not found"), limactl.ErrNoInstance, "litterbox machine start"},
		{fatal("unmatched instances"), limactl.ErrNoInstance, "litterbox machine start"},
		{fatal("open /home/a/.lima/box/lima.yaml: no such file or directory"), limactl.ErrNoInstance, "litterbox machine start"},
		{fatal("instance `box` already exists (`/home/a/.lima/box`)"), limactl.ErrExists, "limactl list box"},
		{fatal("cannot clone a running instance"), limactl.ErrNotStopped, "litterbox machine stop"},
		{fatal("expected status `Running`, got `Stopped` (maybe use `limactl stop -f`?)"), limactl.ErrNotRunning, "litterbox machine start"},
		{fatal("failed to delete instance `box`: instance is protected to prohibit accidental removal (Hint: use `limactl unprotect`)"), limactl.ErrProtected, "limactl unprotect box"},
		{fatal("failed to find the QEMU binary for the architecture `x86_64`: exec: \\\"qemu-system-x86_64\\\": executable file not found in $PATH"), limactl.ErrNoHypervisor, "qemu"},
		{fatal("vmType `vz` is not a registered driver"), limactl.ErrConfig, ""},
		{fatal("failed to validate YAML file `/x`: field `images` must be set"), limactl.ErrConfig, ""},
		{fatal("template `_images/debian-99.yaml` not found"), limactl.ErrImage, "limactl create --list-templates"},
		{fatal("failed to download the file `https://example.com/x`: unexpected status code 404"), limactl.ErrImage, "litterbox machine logs"},
		{fatal("did not receive an event with the `running` status"), limactl.ErrNotBooted, "litterbox machine logs"},
		{fatal("exiting, status={Running:false Degraded:false Exiting:true} (hint: see `/home/a/.lima/box/ha.stderr.log`)"), limactl.ErrEnded, "litterbox machine logs"},
		{`{"level":"warning","msg":"write /x: no space left on device"}` + "\n" + fatal("exiting, status={}"), limactl.ErrEnded, "litterbox machine logs"},
		{fatal("failed to convert: write /home/a/.lima/box/disk: no space left on device"), limactl.ErrDiskFull, "df -h"},
		{fatal("something new"), limactl.ErrFailed, "litterbox machine logs"},
		{"", limactl.ErrFailed, "litterbox machine logs"},
	} {
		c := standIn(t, "cat >&2 <<'END'\n"+test.log+"\nEND\nexit 1\n")
		err := c.Clone(t.Context(), "box", "other")
		if !errors.Is(err, test.want) || !strings.HasPrefix(err.Error(), `cannot clone the virtual machine "box" as "other": `) {
			t.Errorf("%s:\n%v", test.log, err)
		}
		if hint := fault.HintOf(err); test.hint != "" && !strings.Contains(hint, test.hint) {
			t.Errorf("%s: the hint is %q", test.log, hint)
		}
	}
}

// The reason why a machine ended while it started is in a log of its own.
func TestEndedWhileItStarted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "litterbox")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := standIn(t, `case "$*" in
*list*) echo '`+strings.ReplaceAll(listed, "/home/a/.lima/litterbox", dir)+`' ;;
*) echo '{"level":"fatal","msg":"exiting, status={Running:false} (hint: see x)"}' >&2; exit 1 ;;
esac`)
	if err := c.Start(t.Context(), "litterbox", time.Minute); !errors.Is(err, limactl.ErrEnded) {
		t.Errorf("without a log: %v", err)
	}
	for log, word := range map[string]string{
		`{"level":"debug","msg":"qemu[stderr]: Could not access KVM kernel module: Permission denied"}
{"level":"debug","msg":"qemu[stderr]: qemu-system-x86_64: failed to initialize kvm: Permission denied"}
{"level":"info","msg":"Driver stopped due to error: ` + "`exit status 1`" + `"}
`: "failed to initialize kvm",
		`{"level":"debug","msg":"QEMU version 7.2.22 detected"}
{"level":"fatal","msg":"could not find firmware for ` + "`x86_64`" + ` (hint: x)"}
`: "could not find firmware",
	} {
		if err := os.WriteFile(filepath.Join(dir, "ha.stderr.log"), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context(), "litterbox", time.Minute); !errors.Is(err, limactl.ErrNoHypervisor) || !strings.Contains(err.Error(), word) {
			t.Errorf("%v", err)
		}
	}
}

func TestWithoutLima(t *testing.T) {
	c := limactl.Client{Env: []string{"PATH=" + t.TempDir()}}
	if _, err := c.List(t.Context()); !errors.Is(err, limactl.ErrNotInstalled) || !strings.Contains(fault.HintOf(err), "brew install lima") {
		t.Errorf("%v, %q", err, fault.HintOf(err))
	}
}

// A canceled run is interrupted, as by a human, and waited for while it cleans
// up.
func TestInterrupted(t *testing.T) {
	c := standIn(t, `trap 'echo interrupted >"$DIR/said"; kill $sleeper; exit 1' INT
sleep 600 & sleeper=$!
echo >"$DIR/begun"
wait`)
	dir := strings.TrimPrefix(c.Env[1], "DIR=")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- c.Stop(ctx, "box", false) }()
	for t.Context().Err() == nil {
		if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-over; fault.KindOf(err) != fault.Canceled {
		t.Errorf("%v", err)
	}
	if said, err := os.ReadFile(filepath.Join(dir, "said")); err != nil || string(said) != "interrupted\n" {
		t.Errorf("%q, %v", said, err)
	}
}

// limactl's log is passed on as it works.
func TestNotes(t *testing.T) {
	c := standIn(t, `printf '{"level":"info","msg":"Downloading\\n  the image"}\n{"level":"debug","msg":"no"}\nplain\n{"level":"info","msg":"last"}' >&2`)
	var notes []string
	c.Note = func(note string) { notes = append(notes, note) }
	if err := c.Delete(t.Context(), "box"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Downloading the image", "last"}, notes); diff != "" {
		t.Error(diff)
	}
}
