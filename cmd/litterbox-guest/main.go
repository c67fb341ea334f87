// The search for a quota of processors takes a tenth of a short start.
//go:debug containermaxprocs=0

// Command litterbox-guest is the small program that litterbox carries for the
// places of sandboxes: their stages and their guest. A keeper starts it.
package main

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/app/inside"
)

func main() { os.Exit(inside.Main(os.Args)) }
