package frozen

import "errors"

// ErrMoved says that a sandbox stands on other packages than when the
// installation began.
var ErrMoved = errors.New("a snapshot was restored, or packages were installed, meanwhile")
