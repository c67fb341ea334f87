package mcp_test

import (
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// A release carries the program that serves agents and unpacks zstd, so that the
// libraries for that do not slow down every other command. The control: without the
// tag they are in the program itself.
func TestCarriedProgram(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	library := func(path, module string) bool {
		t.Helper()
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(info.Deps, func(one *debug.Module) bool { return strings.Contains(one.Path, module) })
	}
	full := h.Program("litterbox")
	release := filepath.Join(h.Dir, "release", "litterbox")
	build(t, full, full, release)
	for _, module := range []string{"modelcontextprotocol", "klauspost/compress"} {
		if !library(full, module) || library(release, module) {
			t.Errorf("%s is in the full program: %t, in the one that is typed: %t", module, library(full, module), library(release, module))
		}
	}

	cmd := command(h, "mcp", "--structured")
	cmd.Path = release
	c := attach(t, h, cmd, newest)
	c.must("sandbox-create", args{"name": "fix"})
	c.do("echo carried >carried")
	if got := h.Git("show", "fix:carried"); got != "carried" {
		t.Errorf("%q", got)
	}
	programs := func(name string) ([]string, error) {
		found, err := filepath.Glob(filepath.Join(h.State, "litterbox", "bin", name))
		return slices.DeleteFunc(found, func(path string) bool { return strings.HasSuffix(path, ".hashed") }), err
	}
	unpacked, err := programs("litterbox-*")
	// The full program, the keeper, the guest, and the outpost, which is the same
	// for both architectures here.
	if err != nil || len(unpacked) != 4 {
		t.Errorf("unpacked: %q, %v", unpacked, err)
	}
	// Keeper and guest are the programs that are carried, as for every other
	// command.
	if got := h.Shell(`for p in /proc/[0-9]*; do grep -qs "XDG_STATE_HOME=` + h.State + `" $p/environ && readlink $p/exe; done`); !strings.Contains(got.Stdout, "/bin/litterbox-keeper-") {
		t.Errorf("it runs: %s", got.Stdout)
	}
	// Another user may not see whose guest it is.
	_, guest := h.MustProcesses("fix")
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", guest)); err == nil && !strings.Contains(exe, "litterbox-guest-") {
		t.Errorf("the guest is %s", exe)
	}
	// A file that another program put in its place is replaced, not executed.
	unpacked, err = programs("litterbox-guest-*")
	if err != nil || len(unpacked) != 1 {
		t.Fatalf("unpacked: %q, %v", unpacked, err)
	}
	planted := filepath.Join(h.Dir, "planted")
	h.Put(planted, "#!/bin/sh\ntouch "+h.Dir+"/executed\n")
	if err := errors.Join(os.Chmod(planted, 0o755), os.Rename(planted, unpacked[0])); err != nil {
		t.Fatal(err)
	}
	if got := h.Shell(unpacked[0]); got.Code != 0 {
		t.Fatalf("the planted program does not run by itself: %+v", got)
	}
	if err := os.Remove(filepath.Join(h.Dir, "executed")); err != nil {
		t.Fatalf("the planted program was not seen: %v", err)
	}
	if got := h.Command(h.Repo, release, "create", "other"); got.Code != 0 {
		t.Errorf("with a planted program: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "executed")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the planted program was executed: %v", err)
	}
	// Errors and exit codes pass through.
	if got := h.Command(h.Repo, release, "mcp", "--http", "0.0.0.0:0"); got.Code != 7 || !strings.Contains(got.Stderr, "litterbox: cannot listen") {
		t.Errorf("%+v", got)
	}
	unpacksZstd(t, h, release)
}

// build links litterbox as the Makefile does, with the programs to carry.
func build(t *testing.T, guest, full, release string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for name, program := range map[string]string{"litterbox-guest-linux-amd64": guest, "litterbox-guest-linux-arm64": guest, "litterbox-outpost-linux-amd64": guest, "litterbox-outpost-linux-arm64": guest, "litterbox-keeper": guest, "litterbox-full": full} {
		packed, id := filepath.Join(dir, name+".gz"), filepath.Join(dir, name+".id")
		pack(t, program, packed)
		content, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(id, fmt.Appendf(nil, "%x\n", sha256.Sum256(content)), 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root(t), "internal", "payload", name+".gz")] = packed
		replace[filepath.Join(root(t), "internal", "payload", name+".id")] = id
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	link(t, release, "CGO_ENABLED=0", "-tags", "embedguest", "-overlay", file)
}

func root(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// link builds litterbox.
func link(t *testing.T, to, env string, flags ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-buildvcs=false", "-o", to}, flags...), "./cmd/litterbox")...)
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), env)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, output)
	}
}

func pack(t *testing.T, program, packed string) {
	t.Helper()
	out, err := os.Create(packed)
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	w, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, in); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
