package fault_test

import (
	"fmt"
	"io/fs"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Each layer says what it could not do. The kind decides the exit code, and the
// hint is what the user types next.
func Example() {
	err := fault.Wrap(fault.NotFound, fs.ErrNotExist, "cannot open sandbox %q", "fix").WithHint("litterbox list")
	fmt.Println(err)
	fmt.Println(fault.KindOf(err), "-", fault.HintOf(err))
	// Output:
	// cannot open sandbox "fix": file does not exist
	// not_found - litterbox list
}
