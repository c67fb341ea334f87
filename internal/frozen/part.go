package frozen

import (
	"path/filepath"
	"strings"
)

// splitPart divides a path below a golden's layer into the part that it is in and the
// rest, and says where a sandbox has that part. A path in no part has an empty part.
func splitPart(path string) (part, below, to string) {
	first, rest, _ := strings.Cut(path, "/")
	switch first {
	case Below:
		return Below, rest, Upper
	case Home:
		return Home, rest, Home
	case caches:
		name, rest, _ := strings.Cut(rest, "/")
		if name == "" || name == "." || name == ".." {
			return "", "", ""
		}
		return filepath.Join(caches, name), rest, filepath.Join(caches, name, Upper)
	}
	return "", "", ""
}

// PartOf returns the part of a layer that a path is in and the rest of the path.
func PartOf(path string) (part, below string) {
	part, below, _ = splitPart(path)
	return part, below
}
