//go:build !linux

package engine

func mountsBelow(string) ([]string, error) { return nil, nil }

func (e *Engine) strayMounts(func(id string) bool) ([]Leftover, error) { return nil, nil }
