package keeper

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

type sized struct {
	driver.Files
	changes, home int64
	err           error
}

func (s sized) Size(context.Context) (changes, home int64, err error) {
	return s.changes, s.home, s.err
}

// Files in another machine are too much once, and again when they have grown;
// unknown sizes are not.
func TestDiskOfAnotherMachine(t *testing.T) {
	const limit = 10 << 20
	var d farDisk
	for i, step := range []struct {
		files   sized
		tooMuch bool
	}{
		{sized{changes: limit}, false},
		{sized{changes: limit, home: 1}, true},
		{sized{changes: limit, home: 1}, false}, // it may be deleting
		{sized{changes: limit, home: 2}, false},
		{sized{changes: limit, home: 1 + slack(limit).bytes}, false},
		{sized{changes: limit, home: 2 + slack(limit).bytes}, true},
		{sized{err: errors.New("silent"), changes: 1 << 40}, false},
		{sized{changes: -1, home: limit}, false},
		{sized{changes: limit, home: 1}, true},
	} {
		d.at = time.Time{} // it has rested
		if what := d.exceeded(t.Context(), step.files, limit); strings.Contains(what, "limit of") != step.tooMuch {
			t.Errorf("step %d: %q", i, what)
		}
	}
	d.ended(t.Context(), sized{changes: 2 * limit})
	d.at = time.Time{}
	if what := d.exceeded(t.Context(), sized{changes: 2 * limit}, limit); what != "" {
		t.Errorf("what was written until everything had ended is too much again: %q", what)
	}
	if what := d.exceeded(t.Context(), sized{changes: 1 << 40}, limit); what != "" {
		t.Errorf("it is asked again at once: %q", what)
	}
}
