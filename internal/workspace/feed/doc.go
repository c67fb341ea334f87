// Package feed is the files of a sandbox as a stream of bytes: what the machine
// that has them lists of them, and the content of a file when it is asked for.
// [Write] and [WriteFile] are the machine's side. [Workspace] is the host's: it
// believes nothing. A listing is bounded in entries and bytes before it is held,
// its names are names, in order and each once, and it has an end: one that ends
// early is unknown, and never means that nothing changed.
//
// A directory is listed depth first. Nothing below a .git is in a listing; which
// directory is a repository of its own is a property of that directory.
//
// Start reading at [Workspace].
package feed
