package keeper

import (
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// ErrOtherVersion is the answer to a client of another version than the one
// that started the sandbox. Stopping it works in every version; its contents
// stay, and the next command starts it in that command's version.
func ErrOtherVersion(name string) error {
	return fault.New(fault.Unsupported, "sandbox %q was started by another version of litterbox, which does not understand this one", name).
		WithHint("litterbox stop %s", name)
}

// understands reports whether a request means here what its sender means. Only
// the order to stop must keep its meaning in all versions.
func understands(request wire.Request) bool {
	return request.Version == wire.Version || request.Op == OpStop
}
