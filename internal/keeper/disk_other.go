//go:build !linux

package keeper

import "errors"

// No sandbox lives on this system's disk.

func spaceOf(string) (space, error) { return space{}, errors.ErrUnsupported }

func usage(string) amount { return amount{} }
