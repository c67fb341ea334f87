//go:build !linux

package installer

// Main runs in a Linux only.
func Main([]string) int { return 127 }
