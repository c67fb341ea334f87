package layer

import (
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// ReadLimited reads everything; more than limit is refused.
func ReadLimited(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = workspace.Stays{Why: "it grows while it is read", Passing: true}
	}
	return content, err
}
