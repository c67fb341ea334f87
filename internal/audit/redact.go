package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// hashBeyond is the length in bytes from which an argument is logged as a hash.
const hashBeyond = 2 << 10

// Text prepares an argument for the log: secrets redacted, and a long one as
// its beginning, length and hash.
func Text(value string, secrets redact.Secrets) string {
	if len(value) <= hashBeyond {
		return secrets.Text(value)
	}
	// A secret that the first cut splits ends after the second.
	clean := secrets.Text(secrets.ByValue(value)[:hashBeyond])
	return strings.ToValidUTF8(clean[:min(len(clean), hashBeyond/8)], "") + "… " + Digest(value)
}

// Digest stands for content that does not belong in a log.
func Digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return fmt.Sprintf("[%d bytes, sha256 %s]", len(content), hex.EncodeToString(sum[:]))
}
