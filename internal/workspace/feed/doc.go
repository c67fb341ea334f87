// Package feed is the files of a sandbox as a stream of bytes: a listing of them
// by the machine that has them, and the content of a file on request. [Write]
// and [WriteFile] are the machine's side. [Workspace] is the host's: it believes
// nothing. A listing is bounded in entries and bytes before it is held, its
// names are names, in order and each once, and it has an end: one that ends
// early is unknown, and never means that nothing changed.
//
// A directory is listed depth first. Nothing below a .git is in a listing; being
// a repository of its own is a property of a directory.
//
// Start reading at [Workspace].
package feed
