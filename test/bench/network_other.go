//go:build !linux

package main

import "errors"

var errLinux = errors.New("the network is measured on Linux only")

func (b *bench) network() error { return errLinux }

func (b *bench) agents() error { return errLinux }

func (b *bench) engines() error {
	b.report.missing("containers: an engine of their own is started on Linux only")
	return nil
}

func (b *bench) inWorld() (int, error) { return 1, errLinux }
