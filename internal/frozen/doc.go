// Package frozen turns files that sandboxes have written into layers that
// never change: for snapshots, and for forks that begin with them.
//
// If nothing runs, the written directories are renamed into a layer, and the
// sandbox goes on with empty ones above it: that takes the same time for any
// size. If something runs, or if no overlay carries the workspace, they are
// copied, with shared blocks where the file system can.
//
// Layers of all sandboxes are in one directory beside theirs ([Store]). Each
// sandbox has a record of those that it stands on and that its snapshots keep
// ([File]); a layer is removed when no record names it. A record is written before
// anything moves and says what to do, so the next process after a kill finishes it.
//
// It knows no git and starts nothing. The caller makes sure that one process at
// a time works on a sandbox, and that nothing runs where something is renamed.
//
// Start reading at [Box.Snapshot].
package frozen
