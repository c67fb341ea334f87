//go:build !linux

package userland

import "context"

// Foundation needs the userland of Linux.
func (Store) Foundation(context.Context) (string, error) { return "", noManager() }

// Adopt needs the userland of Linux.
func (Above) Adopt(context.Context) error { return noManager() }
