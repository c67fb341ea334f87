// Package workspace is what the host may ask about the files of one sandbox,
// wherever they are: on this disk, or in a machine that only its own program
// can look into. Commits, merges, deletions and listings of usage ask a
// [Workspace] and open nothing of it themselves.
//
// Package local answers from this disk, package feed from a listing that
// arrives as a stream. A question that finds no answer fails with [ErrUnknown]:
// the caller must not take that for "nothing changed" or "nothing is there".
// The package decides nothing about what it finds; package branch does.
//
// Start reading at [Workspace].
package workspace
