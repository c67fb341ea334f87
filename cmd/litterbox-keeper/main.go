// The search for a quota of processors takes a tenth of a short start.
//go:debug containermaxprocs=0

// Command litterbox-keeper is the host program that litterbox carries: the
// keeper of a sandbox. litterbox starts it.
package main

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/app/child"
)

func main() { os.Exit(child.Main(os.Args)) }
