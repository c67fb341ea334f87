// Package wire is the one byte stream between host and guest: what it says
// (protocol.go), how it is cut into frames (frame.go), how SSH carries many
// streams at once over any stream a driver has (link.go), and the client's side
// of every operation (call.go, run.go).
//
// It deliberately knows nothing of git, sandboxes on disk or how an operation
// is carried out inside; package guest answers. Everything that arrives from a
// guest is untrusted: lengths, names and texts are checked here before any
// caller sees them.
//
// Start reading at [Request].
package wire
