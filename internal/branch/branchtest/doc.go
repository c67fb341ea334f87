// Package branchtest holds a sandbox's workspace for tests, as the engine would:
// layers, an upper directory and a branch. [Box.Inside] acts in a user namespace
// of its own; the test binary serves as its inside, so a test package that uses
// it calls [Main] from its TestMain.
package branchtest
