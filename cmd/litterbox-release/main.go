// Command litterbox-release makes a release of the commit that is checked out:
// an archive for each system and processor, Debian and RPM packages, and their
// checksums. The same commit gives the same bytes, wherever it is built with
// the same versions of Go and gzip.
//
// It builds in a clone of its own, so that nothing uncommitted gets in.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is what a program is built for.
type target struct{ system, arch string }

func (t target) String() string { return t.system + "_" + t.arch }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	version := flag.String("version", "", "version of the release, such as 1.2.3; by default what git describe says")
	out := flag.String("o", "dist", "directory for the release; it must not exist")
	flag.Parse()
	if err := run(ctx, *version, *out); err != nil {
		fmt.Fprintln(os.Stderr, "litterbox-release:", err)
		os.Exit(1)
	}
}

// release is one release on its way.
type release struct {
	ctx     context.Context
	version string    // without a leading v, as packages have it
	date    time.Time // of the commit: every file of the release has it
	source  string    // the clone that it is built in
	dist    string    // where the release goes
}

func run(ctx context.Context, version, out string) (err error) {
	dist, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dist); err == nil {
		return fmt.Errorf("%s exists: remove it, or name another directory with -o", out)
	}
	scratch, err := os.MkdirTemp("", "litterbox-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()

	r := &release{ctx: ctx, source: filepath.Join(scratch, "source"), dist: filepath.Join(scratch, "dist")}
	if err := r.clone(version); err != nil {
		return err
	}
	if err := os.Mkdir(r.dist, 0o755); err != nil {
		return err
	}
	fmt.Printf("litterbox %s of %s\n", r.version, r.date.Format(time.DateOnly))
	if err := r.programs(); err != nil {
		return err
	}
	if err := r.texts(); err != nil {
		return err
	}
	for _, t := range targets {
		if err := r.archive(t); err != nil {
			return err
		}
		if t.system != "linux" {
			continue
		}
		for _, packager := range []string{"deb", "rpm"} {
			if err := r.pack(t, packager); err != nil {
				return err
			}
		}
	}
	if err := r.sums(); err != nil {
		return err
	}
	return deliver(r.dist, dist)
}

// clone takes the commit that is checked out here, with its date and version.
func (r *release) clone(version string) error {
	top, err := r.output(".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	described, err := r.output(top, "git", "describe", "--tags", "--always")
	if err != nil {
		return err
	}
	r.version = packageVersion(cmp.Or(version, described))
	seconds, err := r.output(top, "git", "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("cannot read the date of the commit: %w", err)
	}
	r.date = time.Unix(unix, 0).UTC()
	return r.do(nil, ".", "git", "clone", "-q", "--no-tags", top, r.source)
}

// packageVersion returns version as Debian and RPM take it: it begins with a
// digit. A commit that no tag describes is a version before every release.
func packageVersion(version string) string {
	version = strings.TrimPrefix(version, "v")
	if version == "" || version[0] < '0' || version[0] > '9' || !strings.Contains(version, ".") {
		return "0.0.0-" + version
	}
	return version
}

// program is the path of the program for t.
func (r *release) program(t target) string {
	return filepath.Join(r.source, "bin", t.String(), "litterbox")
}

// programs builds the program for every target.
func (r *release) programs() error {
	for _, t := range targets {
		fmt.Println("building", t)
		env := []string{"GOOS=" + t.system, "GOARCH=" + t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS="}
		if err := r.do(env, r.source, "make", "-s", "build", "VERSION=v"+r.version, "PROGRAM="+r.program(t)); err != nil {
			return err
		}
	}
	return nil
}

// native returns the target that runs here.
func (r *release) native() (target, error) {
	for _, t := range targets {
		if t == (target{runtime.GOOS, runtime.GOARCH}) {
			return t, nil
		}
	}
	return target{}, fmt.Errorf("cannot make a release on %s/%s: the completions are made by running the program", runtime.GOOS, runtime.GOARCH)
}

// deliver moves the finished release to the requested directory.
func deliver(from, to string) error {
	if err := os.Rename(from, to); err == nil {
		return nil
	}
	return os.CopyFS(to, os.DirFS(from)) // another file system
}

// do runs a program with env besides the environment of this one.
func (r *release) do(env []string, dir, name string, args ...string) error {
	cmd := exec.CommandContext(r.ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot run %s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// output runs a program and returns the line that it prints.
func (r *release) output(dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot run %s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
