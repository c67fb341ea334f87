package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// FuzzEventLog puts anything into the event log: events are read in order, and
// the next event is numbered above it.
func FuzzEventLog(f *testing.F) {
	f.Add([]byte(`{"version":1,"seq":1,"type":"created"}` + "\n" + `{"version":1,"seq":2}` + "\n"))
	f.Add([]byte(`{"seq":5,"checksum":"00000000"}` + "\n{torn"))
	f.Add([]byte("\n\n\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := store.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.Root, "events.jsonl"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		read := func() (last uint64, number int) {
			if err := s.Events(0, func(event sandbox.Event) bool {
				if event.Seq <= last {
					t.Fatalf("%d comes after %d", event.Seq, last)
				}
				last, number = event.Seq, number+1
				return true
			}); err != nil {
				t.Fatal(err)
			}
			return last, number
		}
		last, _ := read()
		if last > 1<<62 {
			return // no log has that many
		}
		if err := s.Emit(t.Context(), &sandbox.Event{Type: sandbox.EventCreated}); err != nil {
			t.Fatal(err)
		}
		if now, _ := read(); now == 0 {
			t.Fatal("the new event cannot be read")
		}
	})
}

// FuzzClaim puts anything into the claim of a name: it is an id, of that name or
// of the one that the sandbox had before it was renamed, or damaged.
func FuzzClaim(f *testing.F) {
	f.Add([]byte("fix-0a1b2c3d"))
	f.Add(seal.Line([]byte("fix-0a1b2c3d\n" + `{"pid":1,"start_time":2,"boot":"x"}`)))
	f.Add([]byte("fix-../../x"))
	f.Add([]byte("other-0a1b2c3d\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := store.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		names := filepath.Join(s.RepositoryDir("/r/.git"), "names")
		if err := errors.Join(os.MkdirAll(names, 0o700), os.WriteFile(filepath.Join(names, "fix"), content, 0o600)); err != nil {
			t.Fatal(err)
		}
		id, err := s.Claimed("/r/.git", "fix")
		switch {
		case errors.Is(err, seal.ErrDamaged):
		case err != nil:
			t.Fatal(err)
		case !regexp.MustCompile(`^[a-z0-9][a-z0-9-]*-[0-9a-f]{8}$`).MatchString(id) || filepath.Base(id) != id:
			t.Fatalf("the id is %q", id)
		}
	})
}

// FuzzCycles puts anything into the record of a running cycle: there is one
// cycle, of that number.
func FuzzCycles(f *testing.F) {
	f.Add([]byte(`{"version":1,"id":1,"state":"executing"}` + "\n"))
	f.Add([]byte(`{"version":1,"id":7}` + "\n" + `{"id":`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := store.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cycles := filepath.Join(s.SandboxDir("x"), "cycles")
		if err := errors.Join(os.MkdirAll(cycles, 0o700), os.WriteFile(filepath.Join(cycles, "00000001.jsonl"), content, 0o600)); err != nil {
			t.Fatal(err)
		}
		live, err := s.LiveCycles(t.Context(), "x")
		if err != nil || len(live) != 1 || live[0].ID != 1 {
			t.Fatalf("%+v, %v", live, err)
		}
	})
}
