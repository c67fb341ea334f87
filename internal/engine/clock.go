package engine

import (
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Clock tells an engine whether something has been silent or unused for too long.
// How long a command took is measured by the process itself.
type Clock struct {
	Today  func() time.Time      // the time of day; nil: the machine's
	Moment func() sandbox.Moment // by the clock that cannot be set; nil: the machine's
}

func (e *Engine) now() time.Time {
	if e.Clock.Today != nil {
		return e.Clock.Today()
	}
	return time.Now()
}

func (e *Engine) moment() sandbox.Moment {
	if e.Clock.Moment != nil {
		return e.Clock.Moment()
	}
	return process.Now()
}
