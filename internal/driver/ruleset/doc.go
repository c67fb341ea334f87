// Package ruleset writes Landlock domains (landlock(7)): which paths a thread,
// and the processes it starts, may reach, on a kernel of any age.
//
// It deliberately knows no driver's paths, and acts on the calling thread alone.
// Start reading at [New].
package ruleset
