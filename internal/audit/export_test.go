package audit

import (
	"crypto/sha256"
	"encoding/hex"
)

// Rehash gives a line the hash of its present content.
func Rehash(line string) string {
	sum := sha256.Sum256([]byte("{" + line[bodyOffset:len(line)-1]))
	return hashPrefix + hex.EncodeToString(sum[:]) + line[bodyOffset-2:]
}
