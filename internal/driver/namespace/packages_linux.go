package namespace

import "github.com/litterbox-sandbox/litterbox/internal/fsmonitor"

// Packages implements driver.Packager.
func (Driver) Packages() bool { return true }

// Guest implements driver.Packager.
func (Driver) Guest() string { return fsmonitor.Program }
