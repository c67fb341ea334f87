//go:build !linux

package fsmonitor

import "io"

// Main has nothing to list: sandboxes are Linux.
func Main([]string, io.Writer) int { return 1 }
