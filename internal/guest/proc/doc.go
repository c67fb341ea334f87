// Package proc reads what the sandbox's own /proc tells of its processes.
package proc
