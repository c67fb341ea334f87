// Package hostile opens, walks and removes, from the host, files that a
// sandbox can write. Everything there is hostile and may change while it is
// looked at: a link leads out, a named pipe in place of a directory waits for
// ever, a directory has no permissions, or is deeper than a path can be.
//
// So nothing there is opened by its full path. Every open is relative to a
// directory that the host has open, follows no link, waits for nothing, and says
// what it wants: a directory, or a file that is then checked. A test in package
// arch finds other ways to open in the packages that touch such directories.
//
// It makes no decision about what it finds. Start reading at [OpenAt] and [Remove].
package hostile

import "errors"

// errNotRegular is the error of File for anything but a regular file.
var errNotRegular = errors.New("it is not a regular file")
