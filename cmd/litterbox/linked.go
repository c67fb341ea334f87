//go:build !embedguest

package main

import "github.com/litterbox-sandbox/litterbox/internal/zstd/linked"

// unpacker is the library: this program is the full one.
var unpacker = linked.NewReader
