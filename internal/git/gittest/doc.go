// Package gittest makes repositories for tests and asks the user's git about
// them.
package gittest
