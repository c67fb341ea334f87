//go:build !linux

package branch

func renameNew(from, to string) error { return renameFree(from, to) }
