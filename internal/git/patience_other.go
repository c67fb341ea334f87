//go:build !linux

package git

// waitsFor lists nothing: this system does not say which file a process waits for.
func waitsFor(int) []wait { return nil }
