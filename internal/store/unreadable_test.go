package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/store"
)

func joined(problems []store.Unreadable) (err error) {
	for _, one := range problems {
		err = errors.Join(err, one.Err)
	}
	return err
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// One broken record must not hide the others, nor be hidden.
func TestUnreadableRecordsAreReported(t *testing.T) {
	t.Parallel()
	s := open(t)
	var want []string
	for i, name := range []string{"old", "new"} {
		good := record(claim(t, s, name), name)
		good.CreatedAt = good.CreatedAt.Add(time.Duration(i) * time.Hour)
		if err := s.Save(good); err != nil {
			t.Fatal(err)
		}
		want = append(want, good.ID)
	}
	broken := map[string]string{"torn": `{"version":1,"id":"x`, "empty": "", "wrong": `{"version":"one"}`}
	var paths []string
	for name, content := range broken {
		path := filepath.Join(s.SandboxDir(claim(t, s, name)), "sandbox.json")
		put(t, path, content)
		paths = append(paths, path)
	}
	all, problems, _ := s.Sandboxes()
	var got []string
	for _, one := range all {
		got = append(got, one.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the good ones, oldest first (- want, + got):\n%s", diff)
	}
	if len(problems) != len(broken) {
		t.Errorf("%d problems: %v", len(problems), problems)
	}
	for _, path := range paths {
		if text := joined(problems).Error(); !strings.Contains(text, path) {
			t.Errorf("nobody names %s: %s", path, text)
		}
	}
}
