//go:build linux

// Command probe is what an attacker would compile, for the attack tests: they
// copy it into a sandbox, and run the same program outside as a control. Its
// abilities are in package probe, which litterbox redteam uses too.
//
// It proves nothing by itself; see package attack.
package main

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/redteam/probe"
)

func main() { os.Exit(probe.Main(os.Args)) }
