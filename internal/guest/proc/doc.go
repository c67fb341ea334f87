// Package proc reads what the sandbox's own /proc says about its processes.
package proc
