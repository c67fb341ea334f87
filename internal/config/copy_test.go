package config_test

import (
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/config"
)

// A pattern of copy never leaves the repository and never names git's own
// directory.
func TestCopyPatternsStayInTheRepository(t *testing.T) {
	t.Parallel()
	for pattern, why := range map[string]string{
		"":                "whole repository",
		".":               "whole repository",
		"/etc/passwd":     "leaves the repository",
		"../other":        "leaves the repository",
		"a/../../b":       "leaves the repository",
		".git/config":     "git's own",
		"sub/.GIT/config": "git's own",
		"a[":              "incomplete",
	} {
		_, err := config.Parse("f", []byte("copy = ['"+pattern+"']"))
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: got %v, want an error that says %q", pattern, err, why)
		}
	}
}
