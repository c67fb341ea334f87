// The search for a quota of processors takes a tenth of a short start.
//go:debug containermaxprocs=0

// Command litterbox gives every coding agent an isolated copy of a git
// repository on its own branch.
package main

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/app"
	"github.com/litterbox-sandbox/litterbox/internal/app/child"
	"github.com/litterbox-sandbox/litterbox/internal/zstd"
)

// version is set by the linker of a release build.
var version string

func main() {
	zstd.Use(unpacker)
	if child.IsChild(os.Args) {
		os.Exit(child.Main(os.Args, app.Drivers()...))
	}
	os.Exit(app.Main(os.Args, version))
}
