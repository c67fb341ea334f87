package attribute

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
)

// lfs reports whether git would replace the content with a pointer.
func (a Attributes) lfs(s Settings) bool { return s.LFS && a.Filter == "lfs" }

const lfsVersion = "version https://git-lfs.github.com/spec/v1"

// pointer returns what Git LFS stores instead of content, by its
// specification. The content itself is the LFS object of that sha256; keeping
// it is up to the caller. Empty content stays empty, and a pointer that was
// checked out without its object stays the same pointer.
func pointer(content []byte) []byte {
	if len(content) == 0 || isPointer(content) {
		return content
	}
	return fmt.Appendf(nil, "%s\noid sha256:%x\nsize %d\n", lfsVersion, sha256.Sum256(content), len(content))
}

// isPointer follows git-lfs, which accepts content that is shorter than 512
// bytes and parses, with any space around it.
func isPointer(content []byte) bool {
	if len(content) >= 512 {
		return false
	}
	lines := strings.Split(string(bytes.TrimSpace(content)), "\n")
	last := len(lines) - 1
	if last < 2 || lines[0] != lfsVersion {
		return false
	}
	for _, extension := range lines[1 : last-1] {
		if !strings.HasPrefix(extension, "ext-") {
			return false
		}
	}
	oid, isOID := strings.CutPrefix(lines[last-1], "oid sha256:")
	size, isSize := strings.CutPrefix(lines[last], "size ")
	return isOID && len(oid) == 2*sha256.Size && strings.Trim(oid, "0123456789abcdef") == "" &&
		isSize && size != "" && strings.Trim(size, "0123456789") == ""
}
