package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// Tree returns the commands with their flags and texts, to make from them reference
// pages, manual pages and completions. It runs none of them.
func Tree() *cobra.Command {
	return newRoot(&session{console: newConsole(nil, io.Discard, io.Discard, func(string) string { return "" })}, "")
}
