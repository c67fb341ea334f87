//go:build !linux

package outpost

import (
	"fmt"
	"os"
)

func hold() int {
	fmt.Fprintln(os.Stderr, "litterbox-guest: needs Linux")
	return 125
}
