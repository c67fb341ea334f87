//go:build !linux

package layer

import "github.com/litterbox-sandbox/litterbox/internal/git"

// Rebranch needs openat2(2).
func Rebranch(string, []string, string, string, git.Owner) error { return errCopy }
