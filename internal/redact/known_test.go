package redact_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// knownOf returns a file of fingerprints of values, each a form of its own.
func knownOf(t testing.TB, path string, values ...string) *redact.Known {
	t.Helper()
	key := filepath.Join(filepath.Dir(path), "key")
	secret := bytes.Repeat([]byte{7}, redact.KeySize)
	if err := os.WriteFile(key, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	line := redact.KnownLine{Key: key}
	for _, value := range values {
		line.Marks = append(line.Marks, redact.Mark(secret, []byte(value))...)
	}
	data, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, "\n{torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return redact.OpenKnown(path)
}

func TestKnownValues(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "known")
	known := redact.Secrets{Known: knownOf(t, path, "correct horse", "correct horse battery", "tiny", "sixsix")}
	for text, want := range map[string]string{
		"":                               "",
		"short":                          "short",
		"sixsix":                         gone,
		"a sixsixsixsix b":               "a " + gone + gone + " b",
		"a tiny one stays":               "a tiny one stays",
		"say correct horse":              "say " + gone,
		"say correct horse battery now":  "say " + gone + " now",
		"correct horse batter":           gone + " batter",
		"correct hors e":                 "correct hors e",
		"API_KEY=abc with correct horse": "API_KEY=" + gone + " with " + gone,
	} {
		if got := known.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := known.And("hunter22").Argv([]string{"x", "in-correct horse-side", "hunter22"}); strings.Join(got, "|") != "x|in-"+gone+"-side|"+gone {
		t.Errorf("%q", got)
	}
	// A value that is noted later counts at once.
	knownOf(t, path, "another value, later")
	if got := known.Tokens("with another value, later"); got != "with "+gone {
		t.Errorf("%q", got)
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("another")) {
		t.Errorf("the file shows a value, or cannot be read: %v", err)
	}
	if got := (redact.Secrets{}).Text("nothing known"); got != "nothing known" {
		t.Errorf("%q", got)
	}
}

// FuzzKnown: no text keeps a value, and nothing else goes.
func FuzzKnown(f *testing.F) {
	const value = "the-value"
	known := redact.Secrets{Known: knownOf(f, filepath.Join(f.TempDir(), "known"), value)}
	f.Add("a the-value b")
	f.Add("the-the-valuethe-value")
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := known.ByValue(text), strings.ReplaceAll(text, value, gone); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	})
}
