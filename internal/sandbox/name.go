package sandbox

import (
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// MaxNameLength is the longest name in bytes: a DNS label (RFC 1035), so that
// a name can serve as a host name on every driver.
const MaxNameLength = 63

// Slug turns what a user typed into a sandbox name: lower case, everything
// that is not an ASCII letter or digit becomes a dash, runs of dashes become
// one, none at the ends, at most [MaxNameLength] bytes. It fails with
// fault.Invalid when nothing is left.
func Slug(typed string) (string, error) {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(typed) {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
			continue
		}
		dash = true
	}
	name := b.String()
	if len(name) > MaxNameLength {
		name = strings.TrimRight(name[:MaxNameLength], "-")
	}
	if name == "" {
		return "", fault.New(fault.Invalid, "cannot use %q as a sandbox name: it has no letter or digit", typed).
			WithHint("litterbox create fix-login")
	}
	return name, nil
}
