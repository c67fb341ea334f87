package engine

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func pemOf(name string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(name)}))
}

// The file that NODE_EXTRA_CA_CERTS names inside always holds a certificate, and
// the host's own extra authority, never a key beside it.
func TestExtraRoots(t *testing.T) {
	t.Parallel()
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("key")}))
	for _, c := range []struct{ name, bundle, extra, all, own string }{
		{name: "none at all"},
		{name: "the system's", bundle: pemOf("one") + pemOf("two"), all: pemOf("one") + pemOf("two"), own: pemOf("one")},
		{
			name: "a company's", bundle: pemOf("one"), extra: "# ours\n" + key + pemOf("ours") + pemOf("ours"),
			all: pemOf("one") + pemOf("ours"), own: pemOf("ours"),
		},
		{name: "only a company's", extra: pemOf("ours"), own: pemOf("ours")},
		{
			name: "the system's again", bundle: pemOf("one") + pemOf("two"), extra: pemOf("one") + pemOf("two"),
			all: pemOf("one") + pemOf("two"), own: pemOf("one") + pemOf("two"),
		},
		{name: "the system's with a key", bundle: key + pemOf("one"), extra: key + pemOf("one"), all: key + pemOf("one"), own: pemOf("one")},
		{
			name: "a damaged key, and lines as another system ends them", bundle: pemOf("one"),
			extra: "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----\n" + strings.ReplaceAll(pemOf("ours"), "\n", "\r\n") + pemOf("one"),
			all:   pemOf("one") + strings.TrimSuffix(strings.ReplaceAll(pemOf("ours"), "\n", "\r\n"), "\r\n") + "\n",
			own:   strings.TrimSuffix(strings.ReplaceAll(pemOf("ours"), "\n", "\r\n"), "\r\n") + "\n" + pemOf("one"),
		},
		{name: "known already", bundle: pemOf("one") + pemOf("ours"), extra: pemOf("ours"), all: pemOf("one") + pemOf("ours"), own: pemOf("ours")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put := func(name, content string) string {
				path := filepath.Join(dir, name)
				if content == "" {
					return ""
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			p := &place{record: &sandbox.Sandbox{}, dir: dir}
			caller := &caller.Caller{Env: []string{"NODE_EXTRA_CA_CERTS=" + put("extra.pem", c.extra)}}
			made, err := p.writeRoots(caller, put("bundle.pem", c.bundle), nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{keeper.RootsFile: c.all, keeper.OwnRootsFile: c.own} {
				if got, err := os.ReadFile(p.path(name)); err != nil || string(got) != want {
					t.Errorf("%s holds %q, not %q, %v", name, got, want, err)
				}
			}
			if named := made.env[extraRootsVariable] != ""; named != (c.own != "") {
				t.Errorf("the variable is set: %t", named)
			}
		})
	}
}

// A file that cannot be read takes nothing away, and is named.
func TestExtraRootsMissing(t *testing.T) {
	t.Parallel()
	p := &place{record: &sandbox.Sandbox{}, dir: t.TempDir()}
	if got := p.extraRoots(&caller.Caller{Env: []string{"NODE_EXTRA_CA_CERTS=/nonexistent/ca.pem"}}, nil); got != nil || len(p.notes) != 1 || !strings.Contains(p.notes[0], "/nonexistent/ca.pem") {
		t.Errorf("%q, notes %q", got, p.notes)
	}
}
