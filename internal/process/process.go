// Package process tells one process from the next that gets its pid, and ends
// exactly the one that was meant, and works around the length limit of socket
// paths. It starts nothing.
package process
