package redteam_test

import (
	"slices"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/redteam"
)

// TestClasses compares the classes that the command line names with those of
// the attacks.
func TestClasses(t *testing.T) {
	var want []redteam.Class
	for _, a := range redteam.Attacks() {
		if !slices.Contains(want, a.Class) {
			want = append(want, a.Class)
		}
	}
	if got := redteam.Classes(); !slices.Equal(got, want) {
		t.Errorf("the classes are %q; those of the attacks are %q", got, want)
	}
}
