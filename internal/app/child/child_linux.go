package child

import (
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
)

func stageMain(verb string) int {
	stage.Main(verb)
	return 0
}

// becomeSubreaper makes the second stage our child when the first one ends.
// Its zombie goes when the keeper does, which is right after the guest.
func becomeSubreaper() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}
