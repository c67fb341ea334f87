// Command litterbox-guest is the small program that litterbox carries: the
// keeper of a sandbox, its stages and its guest. litterbox starts it.
package main

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/app/child"
)

func main() { os.Exit(child.Main(os.Args)) }
