// Package layer is what workspaces are made of: a cache, shared by all
// sandboxes of a repository, of checked-out trees, of small layers above them,
// of git directories with only the history that a base reaches, and of
// submodules; and copies of these where no overlay is available.
//
// A layer never changes once it is complete. Mounting it and what a sandbox
// writes above it are not this package's business; it reads those files,
// without following links, for callers that compare.
//
// Start reading at [Cache.Layers].
package layer
