package hostile

// Entry is what Walk says about a file or directory.
type Entry struct {
	Device, Inode uint64
	Bytes         int64 // of its blocks
}
