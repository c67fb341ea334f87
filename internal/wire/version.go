//go:build !nextwire

package wire

// Version of the frames and requests. It is in the SSH identification string,
// in every [Request] and in every [Hello]; a guest, keeper or client of another
// version is named in an error instead of being misunderstood. Anything an
// older one can do without (a field, an operation) needs no new version.
//
// To make a new one: count up here and in version_next.go, which is one ahead.
const Version = 1

// Identification is the SSH version string both ends send first (RFC 4253, 4.2).
const Identification = "SSH-2.0-litterbox_1"
