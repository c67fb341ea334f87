package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// other is what users would pick instead to run a command isolated from the
// machine. None of them makes a branch or a commit.
type other struct {
	name  string
	argv  func() []string // runs true in it
	end   func() error    // removes what was prepared for it
	image string          // of docker
}

// findOthers prepares the others that are installed and reports those that are not.
func (b *bench) findOthers() {
	for _, candidate := range []struct {
		name    string
		prepare func() (other, error)
	}{
		{"bwrap", b.bwrap},
		{"crun", func() (other, error) { return b.oci("crun") }},
		{"runc", func() (other, error) { return b.oci("runc") }},
		{"docker", b.docker},
	} {
		if _, err := exec.LookPath(candidate.name); err != nil {
			b.report.missing("%s: it is not installed", candidate.name)
			continue
		}
		one, err := candidate.prepare()
		if err == nil {
			err = b.command(b.dir, one.argv()...)
		}
		if err != nil {
			b.report.missing("%s: %s", candidate.name, b.readable(err))
			continue
		}
		if one.name == "" {
			one.name = candidate.name
		}
		b.others = append(b.others, one)
	}
}

// readable returns one line of an error, without the paths of this run: what a
// program said rather than how it was called.
func (b *bench) readable(err error) string {
	var failed *exec.ExitError
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	text := lines[0]
	if errors.As(err, &failed) && len(lines) > 1 {
		text = lines[1]
	}
	return strings.NewReplacer(b.litterbox, "litterbox", b.dir+"/", "", b.dir, "").Replace(text)
}

func (b *bench) endOthers() error {
	var all []error
	for _, one := range b.others {
		if one.end != nil {
			all = append(all, one.end())
		}
	}
	return errors.Join(all...)
}

func (b *bench) bwrap() (other, error) {
	argv := []string{"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"}
	return other{argv: func() []string { return argv }}, nil
}

// oci runs a bundle of the machine's own /usr, with the runtime's defaults.
func (b *bench) oci(name string) (other, error) {
	bundle, state := filepath.Join(b.dir, name), filepath.Join(b.dir, name+"-state")
	root := filepath.Join(bundle, "rootfs")
	if err := os.MkdirAll(filepath.Join(root, "usr"), 0o755); err != nil {
		return other{}, err
	}
	if err := os.Mkdir(state, 0o700); err != nil {
		return other{}, err
	}
	spec, command := []string{name, "spec"}, []string{name, "--root", state}
	if os.Geteuid() != 0 {
		spec = append(spec, "--rootless")
	}
	if err := b.command(bundle, spec...); err != nil {
		return other{}, err
	}
	path := filepath.Join(bundle, "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return other{}, err
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return other{}, err
	}
	process, _ := config["process"].(map[string]any)
	mounts, _ := config["mounts"].([]any)
	if process == nil {
		return other{}, fmt.Errorf("%s spec wrote no process", name)
	}
	process["terminal"], process["args"] = false, []string{"true"}
	config["root"] = map[string]any{"path": "rootfs", "readonly": true}
	bind := func(from string) {
		mounts = append(mounts, map[string]any{"destination": from, "source": from, "type": "bind", "options": []string{"rbind", "ro"}})
	}
	bind("/usr")
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		at, err := os.Readlink("/" + name)
		switch {
		case err == nil:
			err = os.Symlink(at, filepath.Join(root, name))
		case errors.Is(err, os.ErrNotExist):
			err = nil
		default: // a directory of its own
			bind("/" + name)
			err = os.Mkdir(filepath.Join(root, name), 0o755)
		}
		if err != nil {
			return other{}, err
		}
	}
	config["mounts"] = mounts
	if data, err = json.Marshal(config); err != nil {
		return other{}, err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return other{}, err
	}
	var count atomic.Int64
	one := other{name: name}
	one.argv = func() []string {
		id := fmt.Sprintf("bench-%d-%d", os.Getpid(), count.Add(1))
		return append(slices.Clone(command), "run", "--bundle", bundle, id)
	}
	const mixed = "/sys/fs/cgroup/unified"
	if _, err := os.Stat(mixed); err == nil && os.Geteuid() == 0 && b.command(b.dir, one.argv()...) != nil {
		// crun refuses a machine that has both versions of control groups.
		one.name = name + " without cgroup v2"
		command = append([]string{"unshare", "--mount", "sh", "-c", "umount " + mixed + ` && exec "$0" "$@"`}, command...)
	}
	return one, nil
}

// docker runs an image of one small program, without a network.
func (b *bench) docker() (other, error) {
	image := fmt.Sprintf("litterbox-bench:%d", os.Getpid())
	if err := b.imported([]string{"docker"}, image, map[string]string{"true": filepath.Join(b.dir, "hello")}); err != nil {
		return other{}, err
	}
	argv := []string{"docker", "run", "--rm", "--network", "none", image, "/true"}
	return other{
		image: image,
		argv:  func() []string { return argv },
		end:   func() error { return b.command(b.dir, "docker", "rmi", image) },
	}, nil
}

// imported makes an image of programs, which need no libc, by the client of an engine.
func (b *bench) imported(client []string, image string, programs map[string]string) error {
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	for name, path := range programs {
		content, err := os.ReadFile(path)
		if err == nil {
			err = archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))})
		}
		if err == nil {
			_, err = archive.Write(content)
		}
		if err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	load := exec.Command(client[0], append(client[1:len(client):len(client)], "import", "-", image)...)
	load.Env, load.Stdin = b.env, &layer
	if output, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("%s import: %w\n%s", client[0], err, output)
	}
	return nil
}
