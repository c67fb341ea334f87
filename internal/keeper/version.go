package keeper

import (
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// ErrOtherVersion is the answer to whoever speaks another version than the one
// that started the sandbox. Stopping it works in every version; what it holds
// stays, and the next command starts it in the version of that command.
func ErrOtherVersion(name string) error {
	return fault.New(fault.Unsupported, "sandbox %q was started by another version of litterbox, which does not understand this one", name).
		WithHint("litterbox stop %s", name)
}

// understands tells whether a request means here what its sender means. Only
// the order to stop has to keep its meaning in all versions.
func understands(request wire.Request) bool {
	return request.Version == wire.Version || request.Op == OpStop
}
