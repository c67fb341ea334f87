//go:build !linux

package inside

import (
	"fmt"
	"os"
)

func stageMain(string) int {
	fmt.Fprintln(os.Stderr, "litterbox-guest: needs Linux")
	return 125
}
