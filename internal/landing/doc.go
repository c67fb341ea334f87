// Package landing is how the work of a sandbox reaches the user: the plain
// files that follow its branch, diff and merge with the user's own git, what a
// merge would let run, and whether it has arrived.
//
// It changes the user's checkout by the user's own git only.
//
// Start reading at [Merge].
package landing
