package vault_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/vault"
)

// inBus says that the test binary runs below a message bus of its own.
const inBus = "LITTERBOX_TEST_BUS"

// roundTrip stores, lists, reads, replaces and removes a value.
func roundTrip(t *testing.T, kind secret.Kind) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v := vault.Vault{Dir: filepath.Join(t.TempDir(), "secrets")}
	if _, err := v.Get(ctx, kind, "one"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of nothing: %v", err)
	}
	for _, value := range []string{"the first value", `a "second" one, ✓`} {
		if err := v.Set(ctx, kind, "one", []byte(value)); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Get(ctx, kind, "one"); err != nil || string(got) != value {
			t.Errorf("%q (%v), want %q", got, err, value)
		}
	}
	entries, err := v.List()
	if err != nil || len(entries) != 1 || entries[0].Name != "one" || entries[0].Kind != kind {
		t.Errorf("the list: %+v (%v)", entries, err)
	}
	err = filepath.WalkDir(v.Dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if info, _ := entry.Info(); info.Mode().Perm() != 0o600 || bytes.Contains(data, []byte("second")) {
			t.Errorf("%s has mode %v, or the value", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := v.Remove(ctx, kind, "one"); err != nil {
		t.Error(err)
	}
	if err := v.Remove(ctx, kind, "one"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("removed twice: %v", err)
	}
	for _, name := range []string{"", "../x", ".x", "a/b", "a b"} {
		if err := v.Set(ctx, kind, name, []byte("some value")); fault.KindOf(err) != fault.Invalid {
			t.Errorf("stored as %q: %v", name, err)
		}
	}
	if err := v.Set(ctx, kind, "short", []byte("short")); err == nil {
		t.Error("a value that is too short is stored")
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	roundTrip(t, secret.Age)
}

// A damaged or foreign file is an error, and shows nothing.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	v := vault.Vault{Dir: t.TempDir()}
	if err := v.Set(t.Context(), secret.Age, "one", []byte("the first value")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(v.Dir, "one.age")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Get(t.Context(), secret.Age, "one"); err == nil || len(got) > 0 {
		t.Errorf("of a damaged file: %q", got)
	}
}

// A real Secret Service, on a bus of the test's own.
func TestKeyring(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the Secret Service is one of Linux")
	}
	if os.Getenv(inBus) != "" {
		v := vault.Vault{Dir: t.TempDir()}
		if got := v.Place(t.Context()); got != secret.Keyring {
			t.Fatalf("with a keyring, values go to %q", got)
		}
		roundTrip(t, secret.Keyring)
		return
	}
	for _, name := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(name); err != nil {
			if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), name) {
				t.Fatalf("%s is not installed, and LITTERBOX_TEST_REQUIRE demands it", name)
			}
			t.Skipf("%s is not installed", name)
		}
	}
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The keyring begins unlocked, by a password of its own; it ends with the bus.
	cmd := exec.CommandContext(ctx, "dbus-run-session", "--", "sh", "-ec",
		`printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null; exec "$0" -test.run '^TestKeyring$' -test.v`, os.Args[0])
	cmd.Env = append(os.Environ(), inBus+"=1", "HOME="+home, "XDG_DATA_HOME="+home+"/data", "XDG_RUNTIME_DIR="+home, "XDG_CACHE_HOME="+home, "XDG_CONFIG_HOME="+home)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestKeyring")) {
		t.Errorf("below a bus of its own (%v):\n%s", err, out)
	}
}

// Without a bus there is no keyring, and nothing starts one.
func TestNoKeyring(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the keychain of macOS is always there")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	v := vault.Vault{Dir: t.TempDir()}
	if got := v.Place(t.Context()); got != secret.Age {
		t.Errorf("without a keyring, values go to %q", got)
	}
	if _, err := v.Get(t.Context(), secret.Keyring, "one"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}

// Values that were read are known by fingerprints, whose key is kept apart.
func TestRemember(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := vault.Vault{Dir: filepath.Join(dir, "vault")}
	file := filepath.Join(dir, "known-values")
	known := redact.Secrets{Known: redact.OpenKnown(file)}
	value := func(n int) string { return fmt.Sprintf("it's a value/number %d", n) }
	// The file becomes full, and moves.
	if err := os.WriteFile(file, bytes.Repeat([]byte("{}\n"), 100<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	const most = 8
	var together sync.WaitGroup
	for n := range most {
		together.Go(func() {
			for range 2 {
				if err := v.Remember(t.Context(), file, []byte(value(n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	together.Wait()
	for n := range most {
		text := base64.StdEncoding.EncodeToString([]byte(value(n)))
		text += " " + value(n) + " " + strings.ReplaceAll(value(n), "'", `'\''`) + " " + url.QueryEscape(value(n)) + " " + hex.EncodeToString([]byte(value(n)))
		if got := known.Text(text); strings.Count(got, redact.Gone) != 5 || strings.Contains(got, "value") {
			t.Fatalf("%d is known as %q", n, got)
		}
	}
	for _, name := range []string{file, file + redact.KnownBefore} {
		data, err := os.ReadFile(name)
		if err != nil || bytes.Contains(data, []byte("number")) || len(data) > 512<<10 {
			t.Errorf("%s has %d bytes and may show a value: %v", name, len(data), err)
		}
	}
	// Without a vault that can be written, the key is beside the fingerprints.
	if err := os.WriteFile(filepath.Join(dir, "no-directory"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(dir, "elsewhere")
	none := vault.Vault{Dir: filepath.Join(dir, "no-directory")}
	if err := none.Remember(t.Context(), elsewhere, []byte(value(0))); err != nil {
		t.Fatal(err)
	}
	if got := (redact.Secrets{Known: redact.OpenKnown(elsewhere)}).Text(value(0)); got != redact.Gone {
		t.Errorf("%q", got)
	}
}
