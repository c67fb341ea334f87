package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// goldenOf makes a golden whose parts say which commit they are of: an ignored file and
// one of HOME.
const goldenOf = `
[hooks]
post_sync = ["sh", "-c", "mkdir -p build && cp version build/out && cp version ~/note"]
`

// versioned commits a version and builds the test's golden.
func versioned(h *program.Host, version string) {
	h.Helper()
	h.Put(filepath.Join(h.Repo, "version"), version+"\n")
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), goldenOf)
	h.Put(filepath.Join(h.Repo, ".gitignore"), "build/\n")
	h.Git("add", "-A")
	h.Git("commit", "--quiet", "--allow-empty", "-m", version)
	h.Must("trust")
}

// begins makes a sandbox from a golden and returns the version that it begins
// with, which is the same in all of its parts.
func begins(h *program.Host, golden string) string {
	h.Helper()
	h.Must("create", "probe", "--golden", golden)
	got := h.Must("exec", "probe", "--no-commit", "--", "sh", "-c", "cat build/out ~/note")
	h.Must("delete", "--force", "--purge", "probe")
	lines := strings.Fields(got)
	if len(lines) != 2 || lines[0] != lines[1] {
		h.Errorf("it begins with parts of several versions: %q", lines)
		return ""
	}
	return lines[0]
}

// goldens fails unless there are that many, with no half-made one beside them
// and no sandbox that one was built in.
func goldens(h *program.Host, want int) {
	h.Helper()
	dirs, err := filepath.Glob(filepath.Join(h.State, "litterbox/golden/*"))
	if err != nil || len(dirs) != want {
		h.Errorf("%d goldens are there, and not %d: %q, %v", len(dirs), want, dirs, err)
	}
	if listed := h.Must("list"); strings.Contains(listed, "golden-") {
		h.Errorf("the sandbox of a build is there:\n%s", listed)
	}
}

func TestBuild(t *testing.T) {
	for verb, args := range map[string][]string{"build": {"build"}, "update": {"golden", "update", "--sync-only"}} {
		t.Run(verb, func(t *testing.T) {
			if verb == "update" && os.Getenv("LITTERBOX_TEST_CRASH") == "" {
				t.Skip("only by make crash, or with LITTERBOX_TEST_CRASH=some: it is a build with fewer phases")
			}
			before := ""
			everyStep(t, change{few: true, before: func(h *program.Host, n int) (string, []string) {
				if n == 1 {
					before = "v0"
					versioned(h, before)
					h.Must("build")
				}
				versioned(h, fmt.Sprint("v", n))
				return "", args
			}, after: func(h *program.Host, n int) {
				now := fmt.Sprint("v", n)
				if got := begins(h, "default"); got != before && got != now {
					h.Errorf("it begins with %q, neither with %q nor with %q", got, before, now)
				}
				h.Must(args...)
				if got := begins(h, "default"); got != now {
					h.Errorf("built again, it begins with %q", got)
				}
				goldens(h, 1)
				before = now
			}})
		})
	}
}

func TestGoldenImport(t *testing.T) {
	here(t)
	everyStep(t, change{few: true, before: func(h *program.Host, n int) (string, []string) {
		archive := filepath.Join(h.Dir, "golden.tgz")
		if n == 1 {
			versioned(h, "v1")
			h.Must("build")
			h.Must("golden", "export", "-o", archive)
		}
		return "", []string{"golden", "import", archive, "--name", "copy"}
	}, after: func(h *program.Host, n int) {
		if h.Litterbox("golden", "show", "copy").Code == 0 {
			begins(h, "copy")
		}
		h.Must("golden", "import", filepath.Join(h.Dir, "golden.tgz"), "--name", "copy", "--force")
		if got := begins(h, "copy"); got != "v1" {
			h.Errorf("it begins with %q", got)
		}
		goldens(h, 2)
		h.Must("golden", "delete", "copy")
		goldens(h, 1)
	}})
}

func TestGoldenDelete(t *testing.T) {
	everyStep(t, change{few: true, before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			versioned(h, "v1")
		}
		h.Must("build", "copy")
		h.Must("create", fmt.Sprint("user", n), "--golden", "copy")
		return "", []string{"golden", "delete", "copy"}
	}, after: func(h *program.Host, n int) {
		if h.Litterbox("golden", "show", "copy").Code == 0 {
			begins(h, "copy")
		}
		h.Litterbox("golden", "delete", "copy") // nothing to do, or the rest of it
		goldens(h, 0)
		user := fmt.Sprint("user", n)
		if got := h.Must("exec", user, "--no-commit", "--", "cat", "build/out"); got != "v1" {
			h.Errorf("a sandbox that stands on it has %q", got)
		}
		h.Must("delete", "--force", "--purge", user)
	}})
}

func TestSpawn(t *testing.T) {
	for _, from := range []string{"", "box"} {
		t.Run("from "+from, func(t *testing.T) {
			args := []string{"spawn", "2"}
			if from != "" {
				args = append(args, "--from", from)
			}
			everyStep(t, change{few: true, before: func(h *program.Host, n int) (string, []string) {
				if n == 1 {
					h.Must("create", "box")
					write(h, "box", "state")
				}
				return "", args
			}, after: func(h *program.Host, n int) {
				works := func() {
					for _, worker := range []string{"project-worker-1", "project-worker-2"} {
						if h.Litterbox("status", worker).Code != 0 {
							continue // not made, or half-made
						}
						if from == "" {
							h.Must("exec", worker, "--", "sh", "-c", "echo it works >file")
							holds(h, worker, "file", "it works\n")
						} else if got := state(h, worker); got != "state" {
							h.Errorf("%s is in state %q", worker, got)
						}
					}
				}
				works()
				h.Must("teardown", "--force")
				h.Must(args...)
				works()
				if listed := h.Must("list"); strings.Count(listed, "project-worker-") < 2 {
					h.Errorf("not all workers are there:\n%s", listed)
				}
				h.Must("teardown", "--force")
				if got := state(h, "box"); got != "state" {
					h.Errorf("without its workers the first one is in state %q", got)
				}
			}})
		})
	}
}

func TestEnvironment(t *testing.T) {
	here(t)
	for _, verb := range []string{"shell", "delete"} {
		t.Run(verb, func(t *testing.T) {
			everyStep(t, change{few: true, before: func(h *program.Host, n int) (string, []string) {
				args := []string{"env", "shell", "--", "sh", "-c", fmt.Sprintf("echo %d >work", n)}
				if verb == "delete" {
					h.Must(args...)
					args = []string{"env", "delete"}
				}
				return "", args
			}, after: func(h *program.Host, n int) {
				if verb == "delete" {
					if work, err := os.ReadFile(filepath.Join(h.Repo, "work")); err != nil || string(work) != fmt.Sprintln(n) {
						h.Errorf("the project has %q, %v", work, err)
					}
				}
				if got := h.Must("env", "shell", "--", "sh", "-c", "echo again >work; git add work; git commit -qm work; git rev-parse HEAD"); got != h.Git("rev-parse", "main") {
					h.Errorf("a commit inside is %q, and not on the checkout's branch", got)
				}
				if status := h.Git("status", "--porcelain"); status != "" {
					h.Errorf("the checkout is not as it was left: %s", status)
				}
				h.Put(filepath.Join(h.Repo, "work"), fmt.Sprintln("between", n))
				h.Git("commit", "--quiet", "-am", "between")
				h.Must("env", "delete", "--all", "--stop")
				if listed := h.Must("env", "list"); strings.Contains(listed, "project-") {
					h.Errorf("an environment is left:\n%s", listed)
				}
			}})
		})
	}
}
