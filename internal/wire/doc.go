// Package wire is the one byte stream between host and guest: what is said on
// it (protocol.go), how it is cut into frames (frame.go), how SSH carries many
// streams at once over whatever a driver has (link.go), and the client's side
// of every operation (call.go, run.go).
//
// It deliberately knows nothing of git, sandboxes on disk or how an operation
// is carried out inside; package guest answers. Whatever arrives from a guest
// is foreign: lengths, names and texts are checked here before anybody sees
// them.
//
// Start reading at [Request].
package wire
