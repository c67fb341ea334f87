package engine

import (
	"testing"
	"time"
)

// A known answer is not replaced by the note that there is none, even if creation
// took longer than the patience with git.
func TestChangesNote(t *testing.T) {
	t.Parallel()
	const unknown = "uncommitted changes, if there are any, stay out of the sandbox"
	over := make(chan time.Time)
	close(over)
	for changed, want := range map[bool]string{true: "uncommitted changes in /repo stay out of the sandbox", false: ""} {
		for range 100 {
			answer := make(chan bool, 1)
			answer <- changed
			if got := changesNote("/repo", answer, over); got != want {
				t.Fatalf("changed %v: %q, want %q", changed, got, want)
			}
		}
	}
	if got := changesNote("/repo", make(chan bool), over); got != unknown {
		t.Errorf("without an answer: %q", got)
	}
}
