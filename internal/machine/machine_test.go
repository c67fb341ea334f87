package machine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]machine.Machine{
		"ssh://host":                     {Host: "host"},
		"ssh://me@host.example.com:2222": {Host: "me@host.example.com", Port: 2222},
		"ssh://me@[2001:db8::1]:22/":     {Host: "me@2001:db8::1", Port: 22},
		"ssh://first.last@build-host_2":  {Host: "first.last@build-host_2"},
	} {
		want.Version, want.Name, want.Kind = 1, "big", machine.SSH
		got, err := machine.Parse("big", address, "")
		if err != nil {
			t.Errorf("%s: %v", address, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", address, diff)
		}
	}
	for _, address := range []string{
		"", "host", "https://host", "ssh://", "ssh://me@", "ssh://me:word@host", "ssh://host/path", "ssh://host?x", "ssh://host#x", "ssh://host:0", "ssh://host:70000", "ssh://host:ssh2x",
		// Text that ssh would take for an option, or a shell for a command.
		"ssh://-oProxyCommand=id", "ssh://-oProxyCommand=id@host", "ssh://me@-oProxyCommand=id", "ssh://$(id)@host", "ssh://a%20b@host", "ssh://a%0ab@host", "ssh://%60id%60@host", "ssh://a'b@host", "ssh://\x1b[2J@host", "ssh://é@host",
	} {
		if got, err := machine.Parse("big", address, ""); fault.KindOf(err) != fault.Invalid || fault.HintOf(err) == "" {
			t.Errorf("%q is read as %+v, %v", address, got, err)
		}
	}
	for _, name := range []string{"", "-x", "a b", "../x", "a/b", "A", "a.json", strings.Repeat("a", 64)} {
		if _, err := machine.Parse(name, "ssh://host", ""); fault.KindOf(err) != fault.Invalid {
			t.Errorf("the name %q is taken: %v", name, err)
		}
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	s := machine.In(t.TempDir())
	if _, err := s.Get("big"); fault.KindOf(err) != fault.NotFound || len(s.Names()) != 0 {
		t.Errorf("an empty store has %v, %v", s.Names(), err)
	}
	one, err := machine.Parse("big", "ssh://me@host:23", "key")
	if err != nil {
		t.Fatal(err)
	}
	one.ID, one.Dir, one.AddedAt = "0123", "/srv/x", time.Unix(1e9, 0).UTC()
	if err := s.Save(one, true); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get("big"); err != nil || !filepath.IsAbs(got.Identity) {
		t.Errorf("%+v, %v", got, err)
	} else if diff := cmp.Diff(one, got); diff != "" {
		t.Errorf("(- saved, + read):\n%s", diff)
	}
	other := one
	other.ID = "4567"
	if err := s.Save(other, true); fault.KindOf(err) != fault.AlreadyExists {
		t.Errorf("a second one of the name: %v", err)
	}
	// Other files there are no machines: a directory of another kind, a file left
	// by a crash, one with an invalid name.
	for _, name := range []string{".new-1", "A.json", "notes"} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"big"}, s.Names()); diff != "" {
		t.Errorf("names (- want, + got):\n%s", diff)
	}
	if _, err := s.Get("small"); fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "the machines are: big") {
		t.Errorf("one that is not there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "big.json"), []byte(`{"version":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get("big"); err == nil {
		t.Errorf("a damaged record is read as %+v", got)
	}
	if err := s.Remove("big"); err != nil || len(s.Names()) != 0 {
		t.Errorf("removed, there are %v, %v", s.Names(), err)
	}
}
