package payload_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/payload"
)

// insideVariable makes the test program the second process of a test: in a
// mount namespace of its own it looks at a program on a noexec file system.
const insideVariable = "LITTERBOX_TEST_NOEXEC"

func TestMain(m *testing.M) {
	if dir := os.Getenv(insideVariable); dir != "" {
		if err := onNoexec(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// program copies echo, a program of this machine, with a mode.
func program(t *testing.T, mode os.FileMode) (path string, content []byte) {
	t.Helper()
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Fatal(err)
	}
	content = read(t, echo)
	path = filepath.Join(t.TempDir(), "echo")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// run executes an open file, as the keeper is started.
func run(file *os.File) (string, error) {
	out, err := exec.Command(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()), "it", "runs").CombinedOutput()
	return string(out), err
}

// where says what an open file is: a path, or memory.
func where(file *os.File) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}

// Only a file that anyone may execute is used in place: under root, sandboxes
// run under an id that is not the owner's. Not parallel: a fork elsewhere in the
// process would keep a copy open for writing, which then cannot be executed.
func TestExecutable(t *testing.T) {
	for mode, copied := range map[os.FileMode]bool{0o755: false, 0o711: false, 0o700: true, 0o754: true, 0o744: true} {
		t.Run(mode.String(), func(t *testing.T) {
			path, content := program(t, mode)
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := payload.Executable(file)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			place, err := where(got)
			if err != nil || strings.HasPrefix(place, "/memfd:") != copied {
				t.Errorf("it is at %q, %v", place, err)
			}
			if out, err := run(got); out != "it runs\n" || err != nil {
				t.Errorf("it says %q, %v", out, err)
			}
			whole, err := io.ReadAll(io.NewSectionReader(got, 0, 1<<30))
			if err != nil || !bytes.Equal(whole, content) {
				t.Errorf("%d bytes of %d, %v", len(whole), len(content), err)
			}
			if copied {
				if _, err := file.Stat(); err == nil {
					t.Error("the file it was copied from stays open")
				}
			}
		})
	}
}

// A home directory that is mounted noexec. The mount needs a namespace of its
// own, and that, without root, a user namespace.
func TestExecutableOnNoexec(t *testing.T) {
	path, _ := program(t, 0o755)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), insideVariable+"="+filepath.Dir(path))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		required := strings.FieldsFunc(os.Getenv("LITTERBOX_TEST_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
		if slices.Contains(required, "namespace") {
			t.Fatalf("LITTERBOX_TEST_REQUIRE demands namespaces: %v", err)
		}
		t.Skipf("this machine allows no mount namespace: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// onNoexec runs in the second process.
func onNoexec(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "echo"))
	if err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOEXEC|syscall.MS_NOSUID|syscall.MS_NODEV, ""); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	path := filepath.Join(dir, "echo")
	if err := os.WriteFile(path, content, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o755); err != nil {
		return err
	}
	if out, err := exec.Command(path, "x").CombinedOutput(); err == nil {
		return fmt.Errorf("it runs there (%q): the test shows nothing", out)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	got, err := payload.Executable(file)
	if err != nil {
		return err
	}
	place, err := where(got)
	if err != nil || !strings.HasPrefix(place, "/memfd:") {
		return fmt.Errorf("it is at %q, %w", place, err)
	}
	if out, err := run(got); out != "it runs\n" || err != nil {
		return fmt.Errorf("it says %q: %w", out, err)
	}
	return nil
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var first []byte
	for range 2 {
		file, err := payload.OpenKeeper(dir)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<30))
		if err != nil || !bytes.HasPrefix(content, []byte("\x7fELF")) {
			t.Errorf("%d bytes, no program: %v", len(content), err)
		}
		if first != nil && !bytes.Equal(content, first) {
			t.Error("the second time it is another one")
		}
		first = content
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Many first commands may unpack at once; each finds the whole program there
// when it returns.
func TestUnpackRaces(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("program "), 1<<17)
	small := packed(t, content)
	path := filepath.Join(t.TempDir(), "bin", "guest")
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			if err := payload.Unpack(path, small); err != nil {
				t.Error(err)
				return
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes of %d, %v", len(got), len(content), err)
			}
		})
	}
	wait.Wait()
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside it: %v, %v", entries, err)
	}
}

func TestUnpackOfBrokenBytes(t *testing.T) {
	t.Parallel()
	whole := packed(t, bytes.Repeat([]byte("program "), 1000))
	flipped := slices.Clone(whole)
	flipped[len(flipped)-5] ^= 1 // in the checksum
	for name, broken := range map[string][]byte{
		"nothing": nil, "no gzip": []byte("program"), "torn": whole[:len(whole)/2], "changed": flipped,
	} {
		path := filepath.Join(t.TempDir(), "bin", "guest")
		if err := payload.Unpack(path, broken); err == nil {
			t.Errorf("%s: it was unpacked", name)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 0 {
			t.Errorf("%s: left behind: %v, %v", name, entries, err)
		}
	}
}

// A process started elsewhere in the program meanwhile must not hold the
// unpacked file open for writing: it could not be executed then.
func TestUnpackBesideForks(t *testing.T) {
	_, content := program(t, 0o755)
	small := packed(t, content)
	stop := make(chan struct{})
	var forks sync.WaitGroup
	for range 4 {
		forks.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := exec.Command("true").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		path := filepath.Join(t.TempDir(), "bin", "guest")
		if err := payload.Unpack(path, small); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := run(file); out != "it runs\n" {
			t.Errorf("it says %q, %v", out, err)
		}
		file.Close()
	}
	close(stop)
	forks.Wait()
}
