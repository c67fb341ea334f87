// Package fsmonitor is the program that git runs inside a sandbox to learn
// which files may have changed (githooks(5), fsmonitor-watchman), so that it
// need not look at the others. It lists the overlay's upper directory, and the
// layers below it that hold what the sandbox wrote before: a file of the base
// that is not there is as the index knows it, because a change, a removal and
// a rename each leave something there. Of files that the base does not have it
// always lists those that git tracks.
//
// It keeps no state and always gives the same answer: everything that the sandbox ever
// changed. It deliberately reads nothing else; if it cannot be sure, it says that
// everything may have changed, which only costs git time. The host never runs it.
//
// Start reading at [List].
package fsmonitor

// The places of things inside a sandbox, read-only.
const (
	Dir       = "/.litterbox"
	Program   = Dir + "/git-fsmonitor" // the value of core.fsmonitor
	Changes   = Dir + "/changes"       // the overlay's upper directory
	Frozen    = Dir + "/frozen"        // layers below it that the sandbox also wrote, by number
	Workspace = Dir + "/workspace"     // a link that names the workspace
	History   = Dir + "/git"           // the git directory that the workspace began with
	Mend      = Dir + "/mend-git"      // a script that restores it: Mend BRANCH
)

// Name is argv[0] of the program, without directories.
const Name = "git-fsmonitor"
