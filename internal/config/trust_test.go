package config_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func ask(t *testing.T, trust config.Trust, repository, hash string) bool {
	t.Helper()
	trusted, err := trust.Trusted(repository, hash)
	if err != nil {
		t.Fatal(err)
	}
	return trusted
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	trust := config.Trust{File: filepath.Join(t.TempDir(), "new", "trust.json")}
	one, two := config.Hash([]byte("1")), config.Hash([]byte("2"))
	if ask(t, trust, "/r/.git", one) {
		t.Error("trusted before anybody said so")
	}
	if _, err := os.Stat(filepath.Dir(trust.File)); err == nil {
		t.Error("asking made a directory")
	}
	must(t, trust.Grant(t.Context(), "/r/.git", one))
	must(t, trust.Grant(t.Context(), "/other/.git", two))
	type answers struct{ Same, Changed, Absent, Other, Spelt bool }
	got := answers{
		ask(t, trust, "/r/.git", one), ask(t, trust, "/r/.git", two), ask(t, trust, "/r/.git", ""),
		ask(t, trust, "/other/.git", one), ask(t, trust, "/r//x/../.git/", one),
	}
	if diff := cmp.Diff(answers{Same: true, Spelt: true}, got); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
	must(t, trust.Grant(t.Context(), "/r/.git", two))
	if ask(t, trust, "/r/.git", one) || !ask(t, trust, "/r/.git", two) {
		t.Error("the later grant does not stand in place of the earlier")
	}
	must(t, trust.Revoke(t.Context(), "/r/.git"))
	must(t, trust.Revoke(t.Context(), "/never/.git"))
	if ask(t, trust, "/r/.git", two) || !ask(t, trust, "/other/.git", two) {
		t.Error("Revoke took the wrong one")
	}
	info, err := os.Stat(trust.File)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestTrustKeepsBrokenPathsApart(t *testing.T) {
	t.Parallel()
	trust := config.Trust{File: filepath.Join(t.TempDir(), "trust.json")}
	must(t, trust.Grant(t.Context(), "/a\xff", "h"))
	must(t, trust.Grant(t.Context(), "/\ufffd", "h"))
	var trusted []string
	for _, repository := range []string{"/a\xff", "/a\xfe", "/a\ufffd", "/\ufffd", "/\xff"} {
		if ask(t, trust, repository, "h") {
			trusted = append(trusted, repository)
		}
	}
	if diff := cmp.Diff([]string{"/a\xff", "/\ufffd"}, trusted); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}

func TestTrustRefuses(t *testing.T) {
	t.Parallel()
	trust := config.Trust{File: filepath.Join(t.TempDir(), "trust.json")}
	if err := trust.Grant(t.Context(), "/r", ""); fault.KindOf(err) != fault.Invalid {
		t.Errorf("granted to no content: %v", err)
	}
	if err := trust.Grant(t.Context(), "relative", "h"); err == nil {
		t.Error("granted to a relative path")
	}
	for name, c := range map[string]struct {
		content string
		kind    fault.Kind
	}{
		"of a later form":   {`{"version": 2, "repositories": {"/r": "h"}}`, fault.Unsupported},
		"without a version": {`{"repositories": {"/r": "h"}}`, fault.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trust := config.Trust{File: filepath.Join(t.TempDir(), "trust.json")}
			write(t, trust.File, c.content)
			trusted, err := trust.Trusted("/r", "h")
			if trusted || fault.KindOf(err) != c.kind {
				t.Errorf("trusted %t, %v", trusted, err)
			}
			if err := trust.Grant(t.Context(), "/r", "h"); fault.KindOf(err) != c.kind {
				t.Errorf("Grant: %v", err)
			}
			content, err := os.ReadFile(trust.File)
			must(t, err)
			if string(content) != c.content {
				t.Errorf("what could not be read was overwritten with %s", content)
			}
		})
	}
}

// A damaged record trusts nothing, blocks nothing, and goes aside.
func TestTrustDamaged(t *testing.T) {
	t.Parallel()
	trust := config.Trust{File: filepath.Join(t.TempDir(), "trust.json")}
	must(t, trust.Grant(t.Context(), "/r", "h"))
	content, err := os.ReadFile(trust.File)
	must(t, err)
	flipped := bytes.Replace(content, []byte(`"h"`), []byte(`"i"`), 1)
	for _, damaged := range [][]byte{flipped, content[:len(content)/2], {}} {
		write(t, trust.File, string(damaged))
		for _, hash := range []string{"h", "i", ""} {
			if trusted, err := trust.Trusted("/r", hash); trusted || err != nil {
				t.Errorf("%q: trusted %t, %v", damaged, trusted, err)
			}
		}
		must(t, trust.Grant(t.Context(), "/s", "s"))
		if trusted, err := trust.Trusted("/s", "s"); !trusted || err != nil {
			t.Errorf("after granting again: %t, %v", trusted, err)
		}
		aside, err := os.ReadFile(trust.File + ".damaged")
		must(t, err)
		if !bytes.Equal(aside, damaged) {
			t.Errorf("%q lies aside as %q", damaged, aside)
		}
	}
}

func TestTrustIsNotLostByOthersWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const writers = 20
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			// A store of its own each, as in a process of its own: the lock
			// belongs to the open file.
			trust := config.Trust{File: filepath.Join(dir, "trust.json")}
			if err := trust.Grant(t.Context(), fmt.Sprintf("/r%d", i), "h"); err != nil {
				t.Error(err)
			}
			if _, err := trust.Trusted("/r0", "h"); err != nil {
				t.Errorf("read while others write: %v", err)
			}
		})
	}
	group.Wait()
	trust := config.Trust{File: filepath.Join(dir, "trust.json")}
	for i := range writers {
		if !ask(t, trust, fmt.Sprintf("/r%d", i), "h") {
			t.Errorf("the grant of writer %d is gone", i)
		}
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".trust-") {
			t.Errorf("%s was left behind", entry.Name())
		}
	}
}
