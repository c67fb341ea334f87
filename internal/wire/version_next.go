//go:build nextwire

package wire

// The version that comes next: with this tag test/versions builds the program
// that will find the keepers and guests of this one running.
const Version = 2

// Identification goes with Version.
const Identification = "SSH-2.0-litterbox_2"
