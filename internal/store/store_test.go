package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

const gitDir = "/home/me/project/.git"

func open(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func claim(t *testing.T, s *store.Store, name string) string {
	t.Helper()
	id, err := s.Claim(gitDir, name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func record(id, name string) *sandbox.Sandbox {
	created := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return &sandbox.Sandbox{
		ID: id, Name: name, Repository: "/home/me/project", GitDir: gitDir, Branch: "agent/" + name,
		Base: strings.Repeat("a", 40), BaseTree: strings.Repeat("b", 40), BaseRef: "refs/heads/main",
		Milestone: strings.Repeat("c", 40), Layers: []string{"/cache/tree", "/cache/git"}, Driver: "namespace",
		Isolation: sandbox.IsolationFull, State: sandbox.Running, Problem: "none <&> \u2028", CreatedAt: created,
		Author: sandbox.Identity{Name: "Ünal", Email: "u@example.com"}, Iterations: 3, Last: strings.Repeat("d", 40),
		InnerHead: strings.Repeat("e", 40), Holder: sandbox.Process{PID: 7, StartTime: 1 << 60, Boot: "boot"}, ConfigHash: "sha256:x",
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprintf("strict %t", strict), func(t *testing.T) {
			t.Parallel()
			s := open(t).Durable(strict)
			id := claim(t, s, "fix")
			want := record(id, "fix")
			if err := s.Save(want); err != nil {
				t.Fatal(err)
			}
			if want.Version != sandbox.RecordVersion {
				t.Errorf("saved as version %d", want.Version)
			}
			found, err := s.Find(gitDir, "fix")
			if diff := cmp.Diff(want, found); err != nil || diff != "" {
				t.Errorf("sandbox: %v (- want, + got):\n%s", err, diff)
			}
			all, problems, _ := s.Sandboxes()
			if diff := cmp.Diff([]*sandbox.Sandbox{want}, all); problems != nil || diff != "" {
				t.Errorf("list: %v (- want, + got):\n%s", problems, diff)
			}

			if none, err := s.Lease(id); none != nil || err != nil {
				t.Errorf("a lease before there was one: %+v, %v", none, err)
			}
			lease := &sandbox.Lease{
				ID: "l1", SandboxID: id, Driver: "namespace", Handle: []byte(`{"pid":7}`), State: sandbox.LeaseActive,
				AcquiredAt: want.CreatedAt, ExpiresAt: want.CreatedAt.Add(time.Hour), Heartbeat: want.CreatedAt.Add(time.Minute),
				Holder: "keeper", Health: "ok",
			}
			if err := s.SaveLease(lease); err != nil {
				t.Fatal(err)
			}
			gotLease, err := s.Lease(id)
			if diff := cmp.Diff(lease, gotLease); err != nil || diff != "" {
				t.Errorf("lease: %v (- want, + got):\n%s", err, diff)
			}
			noLitter(t, s.SandboxDir(id))
		})
	}
}

// noLitter checks that there are no temporary files.
func noLitter(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), ".") {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMissingRecords(t *testing.T) {
	t.Parallel()
	s := open(t)
	if _, err := s.Find(gitDir, "fix"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no such name: %v", err)
	}
	if _, err := s.Sandbox("fix-00000000"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such id: %v", err)
	}
	if all, problems, _ := s.Sandboxes(); all != nil || problems != nil {
		t.Errorf("nothing yet: %v, %v", all, problems)
	}
	// Claimed, and not saved yet: being created, which is not a problem.
	claim(t, s, "fix")
	if all, problems, _ := s.Sandboxes(); all != nil || problems != nil {
		t.Errorf("being created: %v, %v", all, problems)
	}
}

// Readers always run beside writers: list beside exec.
func TestReplacementIsAtomic(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	if err := s.Save(record(id, "fix")); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				got, err := s.Sandbox(id)
				if err != nil {
					t.Errorf("while it is written: %v", err)
					return
				}
				// Both halves must be of one record, or it is a mixture.
				if want := strings.Repeat("x", got.Iterations*100); got.Iterations != 3 && got.Problem != want {
					t.Errorf("iteration %d has a problem of %d bytes", got.Iterations, len(got.Problem))
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 300 {
		next := record(id, "fix")
		next.Iterations, next.Problem = i%50+4, strings.Repeat("x", (i%50+4)*100)
		if err := s.Save(next); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
	noLitter(t, s.SandboxDir(id))
}

func TestClaimHasOneWinner(t *testing.T) {
	t.Parallel()
	s := open(t)
	const racers = 50
	ids := make([]string, racers)
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range racers {
		wait.Go(func() {
			<-start
			id, err := s.Claim(gitDir, "fix")
			if err != nil && fault.KindOf(err) != fault.AlreadyExists {
				t.Errorf("kind %s: %v", fault.KindOf(err), err)
			}
			ids[i] = id
		})
	}
	close(start)
	wait.Wait()
	winner, err := s.Claimed(gitDir, "fix")
	if err != nil || !strings.HasPrefix(winner, "fix-") {
		t.Fatalf("claimed by %q, %v", winner, err)
	}
	winners := 0
	for _, id := range ids {
		if id != "" {
			winners++
			if id != winner {
				t.Errorf("%s believes that it has won", id)
			}
		}
	}
	if winners != 1 {
		t.Errorf("%d winners", winners)
	}
	if _, err := os.Stat(s.SandboxDir(winner)); err != nil {
		t.Error(err)
	}
	noLitter(t, s.RepositoryDir(gitDir))
}

func TestMoveGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	s := open(t)
	r := record(claim(t, s, "fix"), "fix")
	for range 2 { // the record still names the old repository
		if err := s.Move(r, "/elsewhere/.git"); err != nil {
			t.Fatal(err)
		}
	}
	if id, err := s.Claimed("/elsewhere/.git", "fix"); err != nil || id != r.ID {
		t.Errorf("it is %q there, %v", id, err)
	}
	if id, err := s.Claimed(gitDir, "fix"); err != nil || id != "" {
		t.Errorf("its old name is still %q, %v", id, err)
	}
	other := record("fix-12345678", "fix")
	if err := s.Move(other, "/elsewhere/.git"); fault.KindOf(err) != fault.AlreadyExists {
		t.Errorf("the name of another sandbox: %v", err)
	}
}

func TestNamesArePerRepository(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := claim(t, s, "fix")
	other, err := s.Claim("/elsewhere/.git", "fix")
	if err != nil || other == first {
		t.Errorf("in another repository: %q, %v", other, err)
	}
	if err := s.Release(gitDir, "fix", "fix-of-somebody-else"); err != nil {
		t.Fatal(err)
	}
	if id, err := s.Claimed(gitDir, "fix"); id != first || err != nil {
		t.Errorf("released by another sandbox: %q, %v", id, err)
	}
	if err := s.Release(gitDir, "fix", first); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(gitDir, "fix", first); err != nil {
		t.Errorf("released twice: %v", err)
	}
	if id, err := s.Claimed(gitDir, "fix"); id != "" || err != nil {
		t.Errorf("after the release: %q, %v", id, err)
	}
	if again := claim(t, s, "fix"); again == first {
		t.Error("an id was used again")
	}
	if id, err := s.Claimed("/elsewhere/.git", "fix"); id != other || err != nil {
		t.Errorf("the other repository's: %q, %v", id, err)
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	newer := record(id, "fix")
	newer.Version = sandbox.RecordVersion + 1
	data, err := json.Marshal(newer)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(s.SandboxDir(id), "sandbox.json"), string(data))
	for what, read := range map[string]func() error{
		"Sandbox":   func() error { _, err := s.Sandbox(id); return err },
		"Find":      func() error { _, err := s.Find(gitDir, "fix"); return err },
		"Sandboxes": func() error { _, problems, _ := s.Sandboxes(); return joined(problems) },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "its record is version 2 and this program knows 1") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Sandbox(id); fault.KindOf(err) != fault.Unsupported || fault.HintOf(err) == "" {
		t.Errorf("kind %s, hint %q", fault.KindOf(err), fault.HintOf(err))
	}
}

func TestStateIsPrivate(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	if err := s.Save(record(id, "fix")); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendIteration(id, &sandbox.Iteration{Number: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.BeginCycle(t.Context(), id, &sandbox.Cycle{}); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOpenResolvesLinks(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(dir, "link"))
	if err != nil || s.Root != filepath.Join(dir, "real") {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDefaultRoot(t *testing.T) {
	for variable, want := range map[string]string{
		"":         "/home/me/.local/state/litterbox",
		"relative": "/home/me/.local/state/litterbox", // does not count (XDG Base Directory Specification)
		"/state":   "/state/litterbox",
	} {
		who := caller.Caller{Home: "/home/me", Env: []string{"XDG_STATE_HOME=" + variable}}
		if got, err := store.DefaultRoot(&who); got != want || err != nil {
			t.Errorf("XDG_STATE_HOME=%q: %q, %v", variable, got, err)
		}
	}
}
