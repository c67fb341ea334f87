// Package local is what the drivers whose places are processes of this machine
// share: the guest's socket, how a start reports that it is ready, and how a
// lease remembers the place. Each driver isolates places in its own way.
//
// Start reading at [Listen] and [Ready].
package local
