package limactl_test

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
)

// realLimactl is the program that LITTERBOX_TEST_LIMACTL names or PATH has.
func realLimactl(t *testing.T) limactl.Client {
	t.Helper()
	path := os.Getenv("LITTERBOX_TEST_LIMACTL")
	if path == "" {
		found, err := exec.LookPath(limactl.Name)
		if err != nil {
			t.Skip("there is no limactl on this machine")
		}
		path = found
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	// Sockets below it have short paths only.
	home, err := os.MkdirTemp("/tmp", "lb-lima-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	return limactl.Client{Env: []string{
		"PATH=" + filepath.Dir(path) + ":" + os.Getenv("PATH"), "HOME=" + home, "USER=" + me.Username, "LIMA_HOME=" + filepath.Join(home, "lima"),
	}}
}

// Everything that needs no virtual machine to run, with the program itself.
func TestRealLimactl(t *testing.T) {
	c := realLimactl(t)
	ctx := t.Context()
	if os.Getuid() == 0 {
		if _, err := c.List(ctx); !errors.Is(err, limactl.ErrRoot) {
			t.Errorf("as root: %v", err)
		}
		return
	}
	if version, err := c.Version(ctx); err != nil || !strings.Contains(version, ".") {
		t.Fatalf("%q, %v", version, err)
	}
	if all, err := c.List(ctx); err != nil || len(all) != 0 {
		t.Fatalf("%v, %v", all, err)
	}
	dir := t.TempDir()
	template := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	image := template("image", strings.Repeat("\x00", 1<<20))
	good := template("good.yaml", `{"vmType": "qemu", "plain": true, "mounts": [], "images": [{"location": "`+image+`"}], "disk": "1GiB", "containerd": {"system": false, "user": false}}`)
	for name, text := range map[string]string{
		"no YAML":        "cpus: [",
		"an unknown key": `{"images": [{"location": "` + image + `"}], "cpusses": 1}`,
		"no image":       "cpus: 1",
	} {
		if err := c.Validate(ctx, template("bad.yaml", text)); !errors.Is(err, limactl.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Validate(ctx, good); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("there is no qemu-img on this machine")
	}
	// limactl would make an unknown name from its own default.
	if err := c.Start(ctx, "absent", 1); !errors.Is(err, limactl.ErrNoInstance) {
		t.Errorf("started: %v", err)
	}
	if all, err := c.List(ctx); err != nil || len(all) != 0 {
		t.Fatalf("starting what is not there made %v, %v", all, err)
	}
	if err := c.Create(ctx, "box", good); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, "box", good); !errors.Is(err, limactl.ErrExists) {
		t.Errorf("created twice: %v", err)
	}
	if err := c.Edit(ctx, "box", ".cpus = 2"); err != nil {
		t.Error(err)
	}
	if err := c.Stop(ctx, "box", false); !errors.Is(err, limactl.ErrNotRunning) {
		t.Errorf("stopped while it does not run: %v", err)
	}
	if err := c.Clone(ctx, "box", "copy"); err != nil {
		t.Error(err)
	}
	if err := c.Clone(ctx, "box", "copy"); !errors.Is(err, limactl.ErrExists) {
		t.Errorf("cloned twice: %v", err)
	}
	if err := c.Clone(ctx, "absent", "copy"); !errors.Is(err, limactl.ErrNoInstance) {
		t.Errorf("cloned what is not there: %v", err)
	}
	for _, name := range []string{"box", "copy"} {
		one, err := c.Find(ctx, name)
		if err != nil || one.Status != limactl.Stopped || one.CPUs != 2 || !one.Config.Plain || len(one.Config.Mounts) != 0 {
			t.Errorf("%s: %+v, %v", name, one, err)
		}
		if err := errors.Join(c.Delete(ctx, name), c.Delete(ctx, name)); err != nil {
			t.Error(err)
		}
	}
	if all, err := c.List(ctx); err != nil || len(all) != 0 {
		t.Fatalf("%v, %v", all, err)
	}
}
