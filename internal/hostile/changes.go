package hostile

import "time"

// Changes is what can be learned about the files below a directory without
// opening any.
type Changes struct {
	Files  int
	Bytes  int64
	Latest time.Time // of the last change of a file or of its metadata
	Newest []string  // a few names of files that changed after the given moment
}

// Same reports whether two looks saw the same.
func (c Changes) Same(other Changes) bool {
	return c.Files == other.Files && c.Bytes == other.Bytes && c.Latest.Equal(other.Latest)
}

// newestNames is how many names are kept.
const newestNames = 4
