//go:build !linux

package branchtest

import (
	"errors"
	"os/exec"
)

// overlayfs is Linux; elsewhere the tests only have to compile.
func mountOverlay(string, string) error { return errors.ErrUnsupported }

func isolate(*exec.Cmd) {}

func monitor(string, string) {}
