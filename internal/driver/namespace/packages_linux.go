package namespace

// Packages implements driver.Packager.
func (Driver) Packages() bool { return true }
