package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

const (
	// exitOwnFailure is the code with which exec, run and shell say that
	// litterbox failed and not the command, as docker(1) and env(1) do.
	exitOwnFailure = 125
	// exitBrokenPipe is 128+SIGPIPE: the code that a shell shows for a program
	// whose reader went away.
	exitBrokenPipe = 141
)

// exitRow is one kind of error, its exit code and when it happens.
type exitRow struct {
	kind fault.Kind
	code int
	when string
}

// exitTable maps kinds of errors to exit codes, in the order of the help page.
func exitTable() []exitRow {
	return []exitRow{
		{fault.Internal, 1, "litterbox or a program it needs broke"},
		{fault.Invalid, 2, "the command line, a name or a configuration is wrong"},
		{fault.NotFound, 3, "there is no such sandbox, path, ref or repository"},
		{fault.AlreadyExists, 4, "the name, branch or file is taken; nothing was replaced"},
		{fault.Conflict, 5, "the state of the repository or sandbox does not allow it"},
		{fault.Unsupported, 6, "this machine or driver cannot do it"},
		{fault.Denied, 7, "it needs --yes, --force or litterbox trust"},
		{fault.Unavailable, 8, "the sandbox cannot be reached or is not isolated well enough"},
		{fault.Timeout, 9, "it took longer than allowed"},
		{fault.Canceled, 130, "it was interrupted"},
	}
}

// exitCode gives the exit code of a kind.
func exitCode(kind fault.Kind) int {
	for _, row := range exitTable() {
		if row.kind == kind {
			return row.code
		}
	}
	return 1
}

// exitStatus ends the program with a code and no message: the command inside, or
// git, has already said everything.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// statusError is nil for success.
func statusError(code int) error {
	if code == 0 {
		return nil
	}
	return exitStatus(code)
}

// passThroughKey marks commands whose exit code belongs to the command inside.
const passThroughKey = "litterbox.exit"

func passThrough() map[string]string { return map[string]string{passThroughKey: "command"} }

func passesThrough(cmd *cobra.Command) bool {
	return cmd != nil && cmd.Annotations[passThroughKey] != ""
}

// report prints err for a person and returns the exit code of the program.
func report(w io.Writer, err error, passThrough bool) int {
	if err == nil {
		return 0
	}
	if status := exitStatus(0); errors.As(err, &status) {
		return int(status)
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitBrokenPipe // the reader is gone; there is no one to tell
	}
	printError(w, err)
	if passThrough {
		return exitOwnFailure
	}
	return exitCode(kindOf(err))
}

// printError writes the error and, on a line of its own, what to type next.
func printError(w io.Writer, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			printError(w, e)
		}
		return
	}
	text := err.Error()
	if kindOf(err) == fault.Canceled && fault.KindOf(err) == fault.Internal {
		text = "interrupted"
	}
	fmt.Fprintf(w, "litterbox: %s\n", cleanText(text))
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintf(w, "  try: %s\n", strings.ReplaceAll(cleanText(hint), "\n", "\n       "))
	}
}

// kindOf is fault.KindOf that also knows the two errors of a context.
func kindOf(err error) fault.Kind {
	kind := fault.KindOf(err)
	switch {
	case kind != fault.Internal:
		return kind
	case errors.Is(err, context.Canceled):
		return fault.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Timeout
	}
	return kind
}
