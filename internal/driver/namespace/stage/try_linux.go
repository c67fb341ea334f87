package stage

import (
	"github.com/litterbox-sandbox/litterbox/internal/driver/netns"
	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
)

// tryDatagrams sets up the network of a sandbox with what carries UDP.
func tryDatagrams() error {
	if err := netns.SetUp(); err != nil {
		return err
	}
	_, err := netns.Datagrams()
	return err
}

// tryFilters installs what watches renames, as the guest does, and then what
// every sandbox is under.
func tryFilters() error {
	if _, err := seccomp.InstallNotify(seccomp.Options{}); err != nil {
		return err
	}
	return seccomp.Install(seccomp.Options{})
}
