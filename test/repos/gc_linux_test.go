package repos_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// The user packs, collects and prunes again and again, while sandboxes run
// commands and commit: no command fails, and nothing that was committed is
// lost, the agent's own commits and deleted branches included.
func TestCollectingWhileSandboxesCommit(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Git("config", "gc.auto", "1") // the user's own git may join in
	const rounds = 6
	names := []string{"one", "two"}
	for _, name := range names {
		h.Must("create", name)
	}
	var stop, done sync.WaitGroup
	over := make(chan struct{})
	collected := 0
	done.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			for _, args := range [][]string{
				{"gc", "--quiet", "--prune=now"}, {"repack", "-adq"}, {"pack-refs", "--all", "--prune"},
				{"prune", "--expire=now"}, {"reflog", "expire", "--expire=now", "--all"}, {"prune-packed", "-q"},
			} {
				got := h.Command(h.Repo, "git", args...)
				// Two processes that pack refs at once: one of them waits its turn out.
				if got.Code != 0 && !strings.Contains(got.Stderr, ".lock") {
					t.Errorf("git %q exited %d: %s", args, got.Code, got.Stderr)
				}
			}
			collected++
			// A user who collects without end removes everything that is made: a
			// commit needs a moment between two collections.
			select {
			case <-over:
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	for _, name := range names {
		stop.Go(func() {
			for round := range rounds {
				script := fmt.Sprintf("echo %d >>log; seq %d >numbers; echo %s-%d >file-%d; git add -A; git commit -qm own-%d; echo late >>log", round, 1000*(round+1), name, round, round, round)
				got := h.InsideShell(name, script)
				if got.Code != 0 || strings.Contains(got.Stderr, "not taken over") || strings.Contains(got.Stderr, "cannot") {
					t.Errorf("%s, round %d: exited %d: %s", name, round, got.Code, got.Stderr)
				}
				switch round {
				case 1, 2, 5:
					if got := h.Litterbox("milestone", name, "-m", fmt.Sprintf("%s until %d", name, round)); got.Code != 0 {
						t.Errorf("milestone of %s, round %d: %s", name, round, got.Stderr)
					}
				case 3:
					extra := name + "-extra"
					for _, args := range [][]string{{"create", extra}, {"exec", extra, "--", "sh", "-c", "echo x >extra"}, {"delete", "--force", extra}} {
						if got := h.Litterbox(args...); got.Code != 0 {
							t.Errorf("%q: %s", args, got.Stderr)
						}
					}
				case 4:
					if got := h.Litterbox("stop", name); got.Code != 0 {
						t.Errorf("stop %s: %s", name, got.Stderr)
					}
				}
			}
		})
	}
	stop.Wait()
	close(over)
	done.Wait()
	t.Logf("collected %d times", collected)
	h.Git("gc", "--quiet", "--prune=now")
	h.Git("fsck", "--strict", "--no-dangling")
	for _, name := range names {
		for round := range rounds {
			want := fmt.Sprintf("%s-%d", name, round)
			if got := h.Git("show", fmt.Sprintf("%s:file-%d", name, round)); got != want {
				t.Errorf("%s: file-%d holds %q", name, round, got)
			}
		}
		if subjects := h.Git("log", "--format=%s", "--all"); strings.Count(subjects, "own-5") != 2 {
			t.Errorf("the agent's own commits are not all there:\n%s", subjects)
		}
		if refs := h.Git("for-each-ref", "--format=%(refname)", "refs/litterbox/trash"); len(strings.Fields(refs)) < 2 {
			t.Errorf("refs: %s", refs)
		}
	}
}
