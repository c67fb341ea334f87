package soak_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// buildGolden makes a golden or brings it up to date, at times with a kill, begins
// a sandbox with it, and deletes it while the sandbox stands on it.
func (b *box) buildGolden(random *rand.Rand) {
	if b.far != nil {
		return // they are layers of this machine
	}
	if b.golden && random.IntN(3) == 0 {
		if !b.ok("golden", "update", b.name, "--sync-only") {
			return
		}
	} else {
		if random.IntN(3) == 0 {
			b.killed(random, 500, b.Repo, "build", b.name)
		}
		if !b.ok("build", b.name) {
			return
		}
	}
	b.golden = true
	other := &box{Host: b.Host, far: b.far, name: b.name + "-golden"}
	if !b.ok("create", other.name, "--golden", b.name) {
		return
	}
	other.exists = true
	other.begins()
	other.exec(random)
	if random.IntN(2) == 0 {
		b.dropGolden()
		b.ok("stop", other.name)
		other.begins()
	}
	other.remove(random)
}

// begins fails unless both parts of the golden are there, of one build.
func (b *box) begins() {
	got := b.Inside(b.name, "cat", "build/golden", b.Home+"/golden")
	parts := strings.Fields(got.Stdout)
	if got.Code != 0 || len(parts) != 2 || parts[0] != parts[1] {
		b.Errorf("%s begins with parts of several goldens: %+v", b.name, got)
	}
}

func (b *box) dropGolden() {
	if b.golden && b.ok("golden", "delete", b.name) {
		b.golden = false
	}
}

// environment uses a live environment of a project of its own: files written in
// it are in the project, HOME stays from shell to shell, and a commit is on the
// project's branch. At times a shell is killed, or the whole is deleted.
func (b *box) environment(random *rand.Rand) {
	if b.far != nil {
		return // they are of this machine only
	}
	project := b.project()
	if b.shells == 0 {
		if err := os.MkdirAll(project, 0o755); err != nil {
			b.Error(err)
			return
		}
		if got := b.Command(project, "git", "init", "--quiet"); got.Code != 0 {
			b.Errorf("git init: %+v", got)
			return
		}
	}
	content := b.next()
	shell := []string{"env", "shell", "--", "sh", "-ec", fmt.Sprintf("echo %s >file; echo >>~/shells; git add file; git commit -qm '%s'", content, content)}
	if random.IntN(4) == 0 {
		b.killed(random, 500, project, "env", "shell", "--", "sh", "-c", "echo killed >killed")
	}
	if got := b.Command(project, b.Program("litterbox"), shell...); got.Code != 0 {
		b.Errorf("an environment's shell: %+v", got)
		return
	}
	b.shells++
	if written, err := os.ReadFile(filepath.Join(project, "file")); err != nil || string(written) != content+"\n" {
		b.Errorf("%s holds %q, want %q, %v", project, written, content, err)
	}
	if got := b.Command(project, "git", "log", "-1", "--format=%s"); strings.TrimSpace(got.Stdout) != content {
		b.Errorf("the commit of an environment: %+v, want %q", got, content)
	}
	got := b.Command(project, b.Program("litterbox"), "env", "shell", "--", "sh", "-c", "wc -l <~/shells")
	if strings.TrimSpace(got.Stdout) != fmt.Sprint(b.shells) {
		b.Errorf("an environment's home has seen %+v shells, want %d", got, b.shells)
	}
	if random.IntN(3) == 0 {
		b.dropEnvironment()
	}
}

// project returns the directory of its live environment.
func (b *box) project() string { return filepath.Join(b.Dir, "live", b.name) }

func (b *box) dropEnvironment() {
	if b.shells > 0 && b.ok("env", "delete", "--stop", b.project()) {
		b.shells = 0
	}
}
