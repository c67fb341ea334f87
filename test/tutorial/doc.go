// Package tutorial types the commands of the documentation's tutorials, and
// compares the output with what they show. A tutorial is a page whose fenced
// blocks are files and sessions: a block with a path in its first line, such as
// "```go greet.go", is written to that path; in a block that begins with "$ ",
// each line with "$ " is typed, and the lines after it are its output.
//
// Ids of commits, times, versions and ports differ each time and are not compared.
// A line "…" stands for any lines. With -update, the actual output is written to
// the pages. Start reading at page.go.
package tutorial
