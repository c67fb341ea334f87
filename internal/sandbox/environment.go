package sandbox

import (
	"crypto/sha1"
	"encoding/hex"
	"path"
	"strings"
)

// longestUser is the longest name of a Linux user (useradd(8)).
const longestUser = 32

// EnvironmentName is the name of the live environment of a directory: its base name
// reduced to a valid Linux user name, and the first four digits of the SHA-1 of its
// path. The same path always has the same name.
func EnvironmentName(dir string) string {
	sum := sha1.Sum([]byte(dir))
	ending := "-" + hex.EncodeToString(sum[:2])
	base, err := Slug(path.Base(dir))
	if err == nil {
		base = strings.TrimLeft(base, "-0123456789")
	}
	if base == "" {
		base = "env"
	}
	if most := longestUser - len(ending); len(base) > most {
		base = strings.TrimRight(base[:most], "-")
	}
	return base + ending
}
