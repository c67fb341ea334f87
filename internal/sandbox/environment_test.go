package sandbox_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func TestEnvironmentName(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`) // useradd(8)
	for dir, want := range map[string]string{
		"/Users/alice/My Projects/cool-app": "cool-app-69cc",
		"/Users/alice/cool-app":             "cool-app-",
		"/home/me/My Project":               "my-project-",
		"/home/me/2048":                     "env-",
		"/home/me/3d_printer.go":            "d-printer-go-",
		"/home/me/项目":                       "env-",
		"/home/me/-":                        "env-",
		"/":                                 "env-",
		"/srv/" + strings.Repeat("long-name-", 9):               "long-name-long-name-long-na-",
		"/srv/abcdefghijklmnopqrstuvwxyz-ends-with-dash-at-cut": "abcdefghijklmnopqrstuvwxyz-",
	} {
		got := sandbox.EnvironmentName(dir)
		prefix, digits := got[:len(got)-4], got[len(got)-4:]
		if !valid.MatchString(got) || !strings.HasPrefix(got, want) || !regexp.MustCompile(`^[0-9a-f]{4}$`).MatchString(digits) {
			t.Errorf("%q is called %q, want %s….", dir, got, want)
		}
		if len(want) > 0 && strings.HasSuffix(want, "-") && prefix != want {
			t.Errorf("%q is called %q, want %s and four digits", dir, got, want)
		}
		if again := sandbox.EnvironmentName(dir); again != got {
			t.Errorf("%q is called %q and then %q", dir, got, again)
		}
	}
	if sandbox.EnvironmentName("/a/app") == sandbox.EnvironmentName("/b/app") {
		t.Error("two directories have one name")
	}
}
