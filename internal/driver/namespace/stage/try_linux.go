package stage

import (
	"github.com/litterbox-sandbox/litterbox/internal/driver/netns"
	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
)

// tryDatagrams sets up the network of a sandbox with the means to carry UDP.
func tryDatagrams() error {
	if err := netns.SetUp(); err != nil {
		return err
	}
	_, err := netns.Datagrams()
	return err
}

// tryFilters installs the filter that watches renames, as the guest does, and
// then the one of every sandbox.
func tryFilters() error {
	if _, err := seccomp.InstallNotify(seccomp.Options{}); err != nil {
		return err
	}
	return seccomp.Install(seccomp.Options{})
}
