// Package overlay makes calls work that an overlay refuses, or that Landlock
// cannot judge: renaming a directory of a lower layer, changing modes, times and
// groups. The kernel stops the caller (seccomp_unotify(2)) until it is done.
package overlay
