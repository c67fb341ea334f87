package sandbox_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func names() map[string]string {
	long := strings.Repeat("a", sandbox.MaxNameLength)
	return map[string]string{
		"fix":                 "fix",
		"Fix Login Bug":       "fix-login-bug",
		"fix/login":           "fix-login",
		"--fix--login--":      "fix-login",
		"-rf":                 "rf",
		"--all":               "all",
		"../../etc/passwd":    "etc-passwd",
		"a\x00b\nc":           "a-b-c",
		"a\x1b[31mb":          "a-31mb",
		"v1.2.3":              "v1-2-3",
		"CAFÉ":                "caf",
		"naïve":               "na-ve",
		"a\xffb":              "a-b",
		"\uff11\uff12":        "",  // full-width digits are not ASCII
		"\u212a":              "k", // the Kelvin sign, whose lower case is ASCII
		"日本 x":                "x",
		"":                    "",
		"-":                   "",
		"…":                   "",
		long:                  long,
		long + "b":            long,
		long[1:] + "-b":       long[1:],
		long[2:] + "---b":     long[2:] + "-b",
		"x" + long[2:] + "/b": "x" + long[2:],
		"HEAD":                "head",
		"refs/heads/main":     "refs-heads-main",
		"main.lock":           "main-lock",
		"@{-1}":               "1",
		"0":                   "0",
		strings.Repeat("-", 200) + "a" + strings.Repeat("-", 200) + "b": "a-b",
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for typed, want := range names() {
		t.Run(typed, func(t *testing.T) {
			t.Parallel()
			got, err := sandbox.Slug(typed)
			if got != want {
				t.Errorf("Slug(%q) = %q, want %q", typed, got, want)
			}
			switch {
			case want != "" && err != nil:
				t.Error(err)
			case want == "" && (fault.KindOf(err) != fault.Invalid || fault.HintOf(err) == ""):
				t.Errorf("Slug(%q): %v", typed, err)
			}
		})
	}
}

// FuzzSlug checks what the rest of litterbox relies on: a name is a DNS label, a
// path component, part of a ref and not an option; it does not change when it is
// typed again; and it has every ASCII letter and digit that was typed, in order,
// until it is full.
func FuzzSlug(f *testing.F) {
	for typed := range names() {
		f.Add(typed)
	}
	label := regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)
	other := regexp.MustCompile(`[^a-z0-9]+`)
	f.Fuzz(func(t *testing.T, typed string) {
		name, err := sandbox.Slug(typed)
		kept := other.ReplaceAllString(strings.ToLower(typed), "")
		if err != nil {
			if name != "" || kept != "" {
				t.Fatalf("Slug(%q) = %q, %v, although it has %q", typed, name, err, kept)
			}
			return
		}
		if !label.MatchString(name) || len(name) > sandbox.MaxNameLength {
			t.Errorf("Slug(%q) = %q is not a label", typed, name)
		}
		if again, err := sandbox.Slug(name); again != name || err != nil {
			t.Errorf("Slug(%q) = %q, %v: typed again it differs", name, again, err)
		}
		if letters := strings.ReplaceAll(name, "-", ""); !strings.HasPrefix(kept, letters) || (len(name) < sandbox.MaxNameLength-1 && letters != kept) {
			t.Errorf("Slug(%q) = %q lost letters of %q", typed, name, kept)
		}
	})
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	for state, want := range map[sandbox.CycleState]bool{
		sandbox.Pending: false, sandbox.Leasing: false, sandbox.Preparing: false, sandbox.Executing: false,
		sandbox.PostProcessing: false, sandbox.Completed: true, sandbox.CycleFailed: true,
	} {
		if got := state.Terminal(); got != want {
			t.Errorf("%s: terminal %t, want %t", state, got, want)
		}
	}
}
