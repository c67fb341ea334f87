package driver

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Imager is also implemented by drivers whose places have their root file
// systems from an engine that keeps images by itself. Then container.base-image
// names one of those, and every sandbox has one.
type Imager interface {
	// Image finds an image, and pulls it if the engine does not have it or Pull is
	// set. An engine without the runtime is ErrUnsupported.
	Image(ctx context.Context, wanted Wanted, progress func(what string, done, total int)) (sandbox.Image, error)
}

// Wanted is what an engine should make a sandbox from.
type Wanted struct {
	Reference string // the name of an image; empty for the driver's own choice
	Pull      bool   // even if the engine has it
	Runtime   string // of the container; empty for the engine's default
}
