// Package process tells one process from the next that gets its pid, and works
// around the length limit of socket paths. It starts and ends nothing.
package process
