package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// FuzzRecords puts anything into every record of a sandbox. It is damaged, or
// from a newer program, or a record that means the same when it is written and
// read again.
func FuzzRecords(f *testing.F) {
	sealed := func(record any) {
		data, err := seal.Encode(record)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	sealed(&sandbox.Sandbox{Version: sandbox.RecordVersion, ID: "x", Name: "fix", Branch: "b"})
	sealed(&sandbox.Lease{Version: sandbox.RecordVersion, ID: "l", SandboxID: "x", Handle: []byte("{}")})
	sealed(map[string]any{"version": 99})
	for _, seed := range []string{
		"", "{", "null", "[]", `{"version":1}`, `{"version":"1"}`, `{"version":1,"checksum":""}`, `{"version":1,"checksum":"00000000"}`,
		`{"version":1,"created_at":"0000-00-00T00:00:00Z"}`, `{"version":1,"handle":"!"}`, "{\"name\":\"\xff\"}", `{"version":-1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := store.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		const id = "x"
		dir := s.SandboxDir(id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"sandbox.json", "lease.json", "origin.json", "agent.json", store.ServicesFile} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		usable := func(what string, err error) bool {
			t.Helper()
			if err != nil && !errors.Is(err, seal.ErrDamaged) && fault.KindOf(err) != fault.Unsupported {
				t.Errorf("%s: %v", what, err)
			}
			return err == nil
		}
		same := func(what string, want, got any, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-written +read):\n%s", what, diff)
			}
		}
		if record, err := s.Sandbox(id); usable("the sandbox", err) {
			record.ID = id
			if err := s.Save(record); err != nil {
				t.Fatal(err)
			}
			again, err := s.Sandbox(id)
			same("the sandbox", record, again, err)
		}
		if lease, err := s.Lease(id); usable("the lease", err) {
			lease.SandboxID = id
			if err := s.SaveLease(lease); err != nil {
				t.Fatal(err)
			}
			again, err := s.Lease(id)
			same("the lease", lease, again, err)
		}
		_, err = s.Origin(id)
		usable("the origin", err)
		var further map[string]any
		found, err := s.Record(id, store.ServicesFile, &further)
		if usable("a further record", err) && !found {
			t.Error("the record is not found")
		}
	})
}
