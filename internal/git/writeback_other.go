//go:build !linux

package git

// startWriteback is a hint to Linux; other systems do without.
func startWriteback(string) {}
