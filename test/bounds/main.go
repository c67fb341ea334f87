// Command bounds runs each test binary for test/run (go test -exec): it gives the
// package a directory for temporary files, watches how much memory, disk and output
// the package takes, and ends it by name if that is more than a test may take. A
// test that reads the machine into its memory then fails, instead of the machine.
//
// It looks only at the processes that the test binary has started and at the directory
// given to it. A process that a test has detached from itself is not counted.
//
//	bounds need FILE                    says what the tests need and what is missing here
//	bounds run FILE BINARY…             runs a test binary, and notes in FILE what it took
//	bounds keep DIR FILE BINARY…        keeps the binary in DIR, then runs it
//	bounds again DIR TOOK FILE PKG…     runs kept binaries of packages once more, in
//	                                    the order of what they took
//	bounds left FILE                    says what the packages took and left
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	args := os.Args[1:]
	code := 2
	switch {
	case len(args) == 2 && args[0] == "need":
		code = need(os.Stdout, args[1])
	case len(args) == 2 && args[0] == "left":
		code = left(os.Stdout, args[1])
	case len(args) > 2 && args[0] == "run":
		code = run(args[1], args[2:])
	case len(args) > 3 && args[0] == "keep":
		if err := keep(args[1], args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "bounds:", err)
			code = 1
			break
		}
		code = run(args[2], args[3:])
	case len(args) > 4 && args[0] == "again":
		code = again(os.Stdout, args[3], args[2], args[1], runtime.NumCPU()+1, args[4:])
	default:
		fmt.Fprintln(os.Stderr, "usage: bounds need FILE | left FILE | run FILE BINARY [ARGUMENT...] | keep DIR FILE BINARY [ARGUMENT...] | again DIR TOOK FILE PACKAGE...")
	}
	os.Exit(code)
}
