package ignore_test

import (
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
)

// Each directory adds its own .gitignore to the rules above it.
func ExampleStack() {
	root := ignore.NewStack(false).Enter("", []byte("*.log\nbuild/\n"))
	src := root.Enter("src", []byte("!keep.log\n"))
	fmt.Println(root.Ignored("debug.log", false), root.Ignored("build", true))
	fmt.Println(src.Ignored("src/debug.log", false), src.Ignored("src/keep.log", false))
	// Output:
	// true true
	// true false
}
