//go:build !linux

package main

import "errors"

var errLinux = errors.New("the network is measured on Linux only")

func (b *bench) network() error { return errLinux }

func (b *bench) agents() error { return errLinux }

func (b *bench) inWorld() (int, error) { return 1, errLinux }
