package hostile

import "time"

// Changes are what can be told of the files below a directory without opening
// one.
type Changes struct {
	Files  int
	Bytes  int64
	Latest time.Time // of the last change of a file or of its metadata
	Newest []string  // names of files that changed after the moment that was asked for; a few
}

// Same reports whether two looks saw the same.
func (c Changes) Same(other Changes) bool {
	return c.Files == other.Files && c.Bytes == other.Bytes && c.Latest.Equal(other.Latest)
}

// newestNames is how many names are kept.
const newestNames = 4
