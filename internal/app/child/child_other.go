//go:build !linux

package child

import (
	"fmt"
	"os"
)

func stageMain(string) int {
	fmt.Fprintln(os.Stderr, "litterbox-guest: needs Linux")
	return 125
}
