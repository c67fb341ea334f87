package layer

// File is one path of the sandbox's present state that is in its upper directory: what
// git would record, and the stat fields that show whether the file is still the same.
type File struct {
	Mode  uint32 // 100644, 100755, 120000 or 160000 (octal)
	Oid   string // raw bytes; not hex
	Size  int64
	Mtime int64 // nanoseconds
	Ctime int64
	Ino   uint64 // 0: hash the file again next time
	// Hollow is how much of it was taken as holes that no earlier commit
	// accounts for; [branch.Limits].Holes bounds the sum.
	Hollow int64
}
