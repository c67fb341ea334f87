// Package frozen makes layers of what sandboxes have written, which then never
// change: for snapshots, and for forks that begin with them.
//
// Where nothing runs, the written directories are renamed into a layer, and the
// sandbox goes on with empty ones above it: that takes the same time whatever
// they hold. Where something runs, or where no overlay carries the workspace,
// they are copied, with shared blocks where the file system can.
//
// Layers of all sandboxes lie in one directory beside theirs ([Store]). Each
// sandbox has a record of those that it stands on and that its snapshots keep
// ([File]); a layer goes when no record names it. A record is written before
// anything moves and says what is to be done, so whoever comes after a kill
// finishes it.
//
// It knows no git and starts nothing. The caller sees to it that one process at
// a time works on a sandbox, and that nothing runs where something is renamed.
//
// Start reading at [Box.Snapshot].
package frozen
