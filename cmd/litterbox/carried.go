//go:build embedguest

package main

import "github.com/litterbox-sandbox/litterbox/internal/app"

// unpacker asks the full program, which this one carries.
var unpacker = app.UnpackByFull
