// The search for a quota of processors takes a tenth of a short start.
//go:debug containermaxprocs=0

// Command litterbox-keeper is the host program that litterbox carries: the
// keeper of a sandbox. litterbox starts it.
package main

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/app/child"
	"github.com/litterbox-sandbox/litterbox/internal/zstd"
	"github.com/litterbox-sandbox/litterbox/internal/zstd/linked"
)

func main() {
	zstd.Use(linked.NewReader) // for requests of models that are metered
	os.Exit(child.Main(os.Args))
}
