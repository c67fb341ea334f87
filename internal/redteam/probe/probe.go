// Package probe is what an attacker would compile: it tries what a shell
// cannot, and prints as JSON what came of it. litterbox redteam copies the
// program that it is part of into a sandbox and runs it there by [Name]; the
// attack tests do so with a program of their own. The same verbs run outside
// as controls.
//
// It judges nothing: what an answer means is said in package redteam, and in
// the attack tests.
package probe

import "path/filepath"

// Name is argv[0] by which litterbox knows that it shall be the probe. Nobody
// types it.
const Name = "litterbox-probe"

// Is reports whether these arguments are the probe's.
func Is(args []string) bool {
	return len(args) > 1 && filepath.Base(args[0]) == Name
}
