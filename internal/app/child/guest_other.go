//go:build !linux

package child

import "errors"

func guestProgram() (string, error) { return "", errors.ErrUnsupported }
