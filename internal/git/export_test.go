package git

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// HasSettled reports whether the memory would trust the times of a file.
func HasSettled(path string) (bool, error) {
	_, changed, err := statIdentity(path)
	return settled(changed, time.Now()), err
}

// Remembered reports whether the memory keeps a setting.
func Remembered(key string) bool {
	return slices.ContainsFunc(rememberedSections[:], func(s string) bool { return strings.HasPrefix(key, s) })
}

// Values are the settings of r that the memory keeps.
func Values(t *testing.T, r *Repository) map[string]string {
	t.Helper()
	s, err := r.Settings()
	if err != nil {
		t.Fatal(err)
	}
	values := maps.Clone(s.Values)
	maps.DeleteFunc(values, func(key, _ string) bool { return !Remembered(key) })
	return values
}

// PlainlyClean reports whether the checkout of r is found clean without git.
func PlainlyClean(t *testing.T, r *Repository) bool {
	t.Helper()
	return r.plainlyClean(t.Context())
}
