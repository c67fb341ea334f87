// Package probe is what an attacker would compile: it tries what a shell cannot,
// and prints the results as JSON. litterbox redteam copies the program that it
// is part of into a sandbox and runs it there by [Name]; the attack tests do so
// with a program of their own. The same verbs run outside as controls.
//
// It judges nothing: package redteam and the attack tests say what an answer means.
package probe

import "path/filepath"

// Name is the argv[0] that makes litterbox the probe. It is never typed.
const Name = "litterbox-probe"

// Is reports whether these arguments are the probe's.
func Is(args []string) bool {
	return len(args) > 1 && filepath.Base(args[0]) == Name
}
