//go:build !linux

package probe

import (
	"fmt"
	"os"
)

// Main says that there is nothing to probe here.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "probe: needs Linux")
	return 1
}
