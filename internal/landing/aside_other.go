//go:build !linux

package landing

func renameNew(from, to string) error { return renameFree(from, to) }
