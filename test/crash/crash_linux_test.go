package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

func TestCreate(t *testing.T) {
	everyStep(t, change{before: func(_ *program.Host, n int) (string, []string) {
		return "", []string{"create", fmt.Sprintf("box%d", n)}
	}, after: func(h *program.Host, n int) {
		name := fmt.Sprintf("box%d", n)
		// Either there is one, which works, or there is none and its name is free.
		if h.Litterbox("status", name).Code != 0 {
			h.Must("create", name)
		}
		h.Must("exec", name, "--", "sh", "-c", "echo it works >file")
		holds(h, name, "file", "it works\n")
		h.Must("delete", "--force", name)
	}})
}

func TestExec(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("echo %d >before", n))
		return "", []string{"exec", "box", "--", "sh", "-c", fmt.Sprintf("echo %d >during", n)}
	}, after: func(h *program.Host, n int) {
		h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("echo %d >after; ls", n))
		holds(h, "box", "before", fmt.Sprintln(n))
		holds(h, "box", "after", fmt.Sprintln(n))
		// What the killed command wrote is committed if it came to write.
		inside := h.Inside("box", "cat", "during")
		if inside.Code == 0 {
			holds(h, "box", "during", inside.Stdout)
		}
	}, box: box})
}

func TestWrite(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("echo old %d >file", n))
		return fmt.Sprintf("new %d\n", n), []string{"write", "box", "file"}
	}, after: func(h *program.Host, n int) {
		h.Must("exec", "box", "--", "true")
		inside := h.Inside("box", "cat", "file")
		if inside.Stdout != fmt.Sprintf("old %d\n", n) && inside.Stdout != fmt.Sprintf("new %d\n", n) {
			h.Errorf("the file holds %q, neither the old content nor the new", inside.Stdout)
		}
		holds(h, "box", "file", inside.Stdout)
	}, box: box})
}

func TestMilestone(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("echo %d >one", n))
		h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("echo %d >two", n))
		return "", []string{"milestone", "box", "-m", fmt.Sprintf("milestone %d", n)}
	}, after: func(h *program.Host, n int) {
		if !strings.HasPrefix(h.Git("log", "-1", "--format=%s", "box"), fmt.Sprintf("milestone %d", n)) {
			h.Must("milestone", "box", "-m", fmt.Sprintf("milestone %d", n))
		}
		h.Must("exec", "box", "--", "sh", "-c", "true")
		holds(h, "box", "one", fmt.Sprintln(n))
		holds(h, "box", "two", fmt.Sprintln(n))
	}, box: box})
}

func TestDelete(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		name := fmt.Sprintf("box%d", n)
		h.Must("create", name)
		h.Must("exec", name, "--", "sh", "-c", fmt.Sprintf("echo %d >file; echo %d >~/note", n, n))
		return "", []string{"delete", "--force", name}
	}, after: func(h *program.Host, n int) {
		name := fmt.Sprintf("box%d", n)
		// Work is on the branch or in the trash, at every moment.
		refs := h.Git("for-each-ref", "--format=%(refname)", "refs/heads/"+name, "refs/litterbox/trash/"+name+"-*")
		if refs == "" {
			h.Errorf("the tip of %s is on no ref", name)
			return
		}
		holds(h, strings.Fields(refs)[0], "file", fmt.Sprintln(n))
		h.Litterbox("delete", "--force", name) // nothing to do, or the rest of it
		h.Must("create", name+"-again")
		h.Must("delete", "--force", name+"-again")
		if listed := h.Must("list"); strings.Contains(listed, name+" ") {
			h.Errorf("%s is still there:\n%s", name, listed)
		}
		restored(h, name, n)
	}, box: boxes})
}

// restored checks that a deleted sandbox can be restored whole, and deletes it
// for good.
func restored(h *program.Host, name string, n int) {
	h.Helper()
	h.Litterbox("trash", "restore", name) // perhaps it is
	holds(h, name, "file", fmt.Sprintln(n))
	if note, err := homeNote(h, name); err != nil || note != fmt.Sprintln(n) {
		h.Errorf("the home of %s holds %q, %v", name, note, err)
	}
	if listed := h.Must("list"); !strings.Contains(listed, name+" ") {
		h.Errorf("%s is not listed:\n%s", name, listed)
	}
	h.Must("delete", "--force", "--purge", name)
}

// homeNote reads ~/note of a sandbox: its file where that is here, for the sandbox need
// not run then.
func homeNote(h *program.Host, name string) (string, error) {
	if h.Far() {
		return h.Inside(name, "sh", "-c", "cat ~/note").Stdout, nil
	}
	notes, err := filepath.Glob(filepath.Join(h.State, "litterbox/sandboxes", name+"-????????", "home/note"))
	if err != nil || len(notes) != 1 {
		return "", fmt.Errorf("there is %q, %v", notes, err)
	}
	note, err := os.ReadFile(notes[0])
	return string(note), err
}

// deleted makes a sandbox and deletes it.
func deleted(h *program.Host, n int) (name string) {
	h.Helper()
	name = fmt.Sprintf("box%d", n)
	h.Must("create", name)
	h.Must("exec", name, "--", "sh", "-c", fmt.Sprintf("echo %d >file; echo %d >~/note", n, n))
	h.Must("delete", "--force", name)
	return name
}

func TestRestore(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		return "", []string{"trash", "restore", deleted(h, n)}
	}, after: func(h *program.Host, n int) {
		restored(h, fmt.Sprintf("box%d", n), n)
	}}) // nothing of it runs
}

func TestEmptyTrash(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		return "", []string{"trash", "empty", "--yes", deleted(h, n)}
	}, after: func(h *program.Host, n int) {
		name := fmt.Sprintf("box%d", n)
		h.Must("trash", "empty", "--yes") // nothing to do, or the rest of it
		if listed := h.Must("trash", "list"); strings.Contains(listed, name) {
			h.Errorf("%s is still in the trash:\n%s", name, listed)
		}
		if refs := h.Git("for-each-ref", "refs/litterbox/trash/"+name+"-*"); refs != "" {
			h.Errorf("the tip of %s is still kept: %s", name, refs)
		}
		left, err := filepath.Glob(filepath.Join(h.State, "litterbox/trash/*/sandboxes/*"))
		if err != nil || len(left) > 0 {
			h.Errorf("files are left: %q, %v", left, err)
		}
		h.Must("create", name) // nothing hinders it
		h.Must("delete", name)
		h.Must("trash", "empty", "--yes")
	}}) // nothing of it runs
}

func TestMerge(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		name := fmt.Sprintf("box%d", n)
		h.Must("create", name)
		h.Must("exec", name, "--", "sh", "-c", fmt.Sprintf("echo %d >file%d", n, n))
		return "", []string{"merge", name, "--no-edit"}
	}, after: func(h *program.Host, n int) {
		name := fmt.Sprintf("box%d", n)
		clearGitLocks(h)
		if listed := h.Must("list"); strings.Contains(listed, name+" ") {
			// git itself may have died between index and work tree.
			h.Git("reset", "--quiet", "--hard")
			h.Git("clean", "--quiet", "--force", "-d", "--exclude=.litterbox") // its keeper writes there
			if h.Litterbox("merge", name, "--no-edit").Code != 0 {
				h.Must("delete", name) // it was merged, and half deleted
			}
		}
		holds(h, "main", fmt.Sprintf("file%d", n), fmt.Sprintln(n))
	}, box: boxes})
}

func TestApply(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("echo %d >file", n))
		h.Must("exec", "box", "--no-commit", "--", "sh", "-c", fmt.Sprintf("echo %d >uncommitted", n))
		return "", []string{"apply", "box", "--no-edit"}
	}, after: func(h *program.Host, n int) {
		clearGitLocks(h)
		// git itself may have died between index and work tree.
		h.Git("reset", "--quiet", "--hard")
		h.Git("clean", "--quiet", "--force", "-d", "--exclude=.litterbox") // its keeper writes there
		h.Must("apply", "box", "--no-edit")
		for _, branch := range []string{"main", "box"} {
			holds(h, branch, "file", fmt.Sprintln(n))
			holds(h, branch, "uncommitted", fmt.Sprintln(n))
		}
		h.Must("exec", "box", "--", "cat", "file")
	}, box: box})
}

// clearGitLocks removes what the user's own git, killed in the middle, leaves
// and names itself.
func clearGitLocks(h *program.Host) {
	h.Shell("rm -f .git/index.lock .git/HEAD.lock .git/ORIG_HEAD.lock .git/refs/heads/main.lock")
}

func TestStop(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("echo %d >file", n))
		h.Must("exec", "box", "--no-commit", "--", "sh", "-c", fmt.Sprintf("echo %d >uncommitted", n))
		return "", []string{"stop", "box"}
	}, after: func(h *program.Host, n int) {
		h.Must("start", "box")
		h.Must("exec", "box", "--", "true")
		holds(h, "box", "file", fmt.Sprintln(n))
		holds(h, "box", "uncommitted", fmt.Sprintln(n))
	}, box: box})
}

func TestStart(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("echo %d >file", n))
		h.Must("stop", "box")
		return "", []string{"start", "box"}
	}, after: func(h *program.Host, n int) {
		h.Must("exec", "box", "--", "sh", "-c", "cat file")
		holds(h, "box", "file", fmt.Sprintln(n))
	}})
}
