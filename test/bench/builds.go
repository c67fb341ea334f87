package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The subjects of targets. Of two that begin alike the longer comes first.
const (
	whatBuild     = "go build of this project"
	whatBuildSame = whatBuild + ", nothing changed"
	whatNpm       = "npm ci, offline"
	whatUntar     = "untar of the Go source tree"
)

// besideOverlay shows what the sandbox adds to the kernel's own overlay.
const besideOverlay = "an overlay outside"

// work is one kind of work, done inside and outside, warm.
type work struct {
	what    string
	prepare string // runs before each, unmeasured
	do      string
}

// inAndOut measures work in the sandbox of a repository, and in a bare clone
// of it outside any sandbox, each as often first as second.
func (b *bench) inAndOut(repo, name string, rounds int, all ...work) error {
	inside := func(script string) error {
		return b.command(repo, b.litterbox, "exec", name, "--no-commit", "--", "sh", "-c", script)
	}
	clone := repo + "-outside"
	beyond := func(script string) error { return b.command(clone, "sh", "-c", script) }
	for _, w := range all {
		// Each keeps its own time: preparation is not measured. Round 0 warms up.
		step := func(run func(string) error, into *[]time.Duration) step {
			return func(i int) error {
				if w.prepare != "" {
					if err := run(fmt.Sprintf(w.prepare, i)); err != nil {
						return err
					}
				}
				start := time.Now()
				err := run(w.do)
				if i > 0 {
					*into = append(*into, time.Since(start))
				}
				return err
			}
		}
		var here, there []time.Duration
		if _, _, err := b.alternately(rounds+1, step(inside, &here), step(beyond, &there)); err != nil {
			return err
		}
		b.timed(w.what, "", timingOf(here), outside, timingOf(there))
	}
	return nil
}

// pair makes the sandbox and the clone for inAndOut.
func (b *bench) pair(repo, name string) error {
	return errors.Join(b.command(b.dir, "git", "clone", "-q", repo, repo+"-outside"), b.command(repo, b.litterbox, "create", name))
}

// goBuild builds this project's own guest, its modules beside it, so that
// nothing is fetched.
func (b *bench) goBuild() error {
	module, err := exec.Command("go", "env", "GOMOD").Output()
	root := filepath.Dir(strings.TrimSpace(string(module)))
	if err != nil || !filepath.IsAbs(root) {
		return fmt.Errorf("cannot find this project's source; start this in it: %w", err)
	}
	repo := filepath.Join(b.dir, "project")
	if err := b.command(b.dir, "git", "clone", "-q", root, repo); err != nil {
		return err
	}
	vendor := exec.Command("go", "mod", "vendor")
	vendor.Dir = repo // with the user's own caches
	if output, err := vendor.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot bring the modules of this project together: %w\n%s", err, output)
	}
	if err := errors.Join(
		b.command(repo, "git", "add", "-A", "-f", "vendor"),
		b.command(repo, "git", "commit", "-qm", "modules"),
		b.pair(repo, "build")); err != nil {
		return err
	}
	const (
		build   = "CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=vendor go build -o bin/guest ./cmd/litterbox-guest"
		changes = "echo '// change %d' >> internal/sandbox/sandbox.go"
		nothing = "true %d"
	)
	// The first measurement's round 0 fills both build caches.
	return errors.Join(b.inAndOut(repo, "build", min(b.rounds, 5),
		work{whatBuild + ", one package changed", changes, build},
		work{whatBuildSame, nothing, build},
	), b.command(repo, b.litterbox, "delete", "--force", "build"))
}

// untar unpacks the source of Go's standard library and tools, inside, outside, and
// on an overlay without a sandbox.
func (b *bench) untar() error {
	found, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	source := filepath.Join(strings.TrimSpace(string(found)), "src")
	if b.small {
		source = filepath.Join(source, "go")
	}
	if _, err := os.Stat(source); err != nil {
		b.report.missing("untar of the Go source tree: Go came without it")
		return nil
	}
	repo, archive := filepath.Join(b.dir, "untar"), filepath.Join(b.dir, "source.tar")
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(repo, ".gitignore"), []byte("/out*/\n/source.tar\n"), 0o644); err != nil {
		return err
	}
	if err := errors.Join(
		b.command(b.dir, "tar", "-cf", archive, "-C", filepath.Dir(source), filepath.Base(source)),
		b.fill(repo, 1), b.pair(repo, "untar"),
		b.command(b.dir, "cp", archive, repo+"-outside/"),
		b.command(repo, b.litterbox, "cp", archive, "untar:source.tar")); err != nil {
		return err
	}
	const unpack = "mkdir out%[1]d && tar -xf source.tar -C out%[1]d" // nothing is deleted beside it
	clone, upper, work, at := repo+"-outside", repo+"-upper", repo+"-work", repo+"-overlay"
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755), os.Mkdir(at, 0o755), b.command(b.dir, "cp", archive, upper+"/")); err != nil {
		return err
	}
	alone := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		alone = append(alone, "--map-root-user")
	}
	mount := fmt.Sprintf("mount -t overlay -o userxattr,lowerdir=%s,upperdir=%s,workdir=%s overlay %s && cd %[4]s && ", repo, upper, work, at)
	few := *b
	few.rounds = min(b.rounds, 5)
	timings, err := few.measure(
		func(i int) error {
			return b.command(repo, b.litterbox, "exec", "untar", "--no-commit", "--", "sh", "-c", fmt.Sprintf(unpack, i))
		},
		func(i int) error { return b.command(clone, "sh", "-c", fmt.Sprintf(unpack, i)) },
		func(i int) error { return b.command(b.dir, append(alone, "sh", "-c", mount+fmt.Sprintf(unpack, i))...) },
	)
	if err != nil {
		return err
	}
	b.timed(whatUntar, "", timings[0], outside, timings[1])
	b.timed(whatUntar, "", timings[0], besideOverlay, timings[2])
	return b.command(repo, b.litterbox, "delete", "--force", "untar")
}
