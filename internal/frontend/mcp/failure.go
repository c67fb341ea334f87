package mcp

import (
	"context"
	"errors"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// errorKey is where a program finds kind, cause and next step of an error. Not
// in the structured content: clients check that against the schema of results.
const errorKey = "io.github.litterbox-sandbox/error"

// nextSteps say, for each kind of error, what to do where the error itself says
// nothing better.
func nextSteps() map[fault.Kind]string {
	return map[fault.Kind]string{
		fault.Invalid:       "correct the arguments and call again",
		fault.NotFound:      "look what there is: sandbox-list, sandbox-files",
		fault.AlreadyExists: "choose another name, or go on in it with sandbox-open",
		fault.Conflict:      "look at the present state, then call again",
		fault.Unsupported:   "do it another way: this machine or this version cannot",
		fault.Denied:        "a human has to allow it",
		fault.Unavailable:   "call again in a moment; if that does not help, ask the human to run: litterbox doctor",
		fault.Timeout:       "call again with a longer timeout, or do less at once",
		fault.Canceled:      "call again if it is still wanted",
		fault.Internal:      "tell the human; this is a defect of litterbox",
	}
}

// toolSteps are next steps that a tool knows better than the error, where the
// error's hint is a command for a human.
func toolSteps() map[string]map[fault.Kind]string {
	hidden := map[fault.Kind]string{fault.Denied: "hidden and internal files are not for this tool; where the task needs one: sandbox-exec with cat or an editor command"}
	return map[string]map[fault.Kind]string{
		"sandbox-create": {
			fault.AlreadyExists: "choose another name, or go on in it with sandbox-open",
			fault.NotFound:      "leave base out to begin at the human's HEAD, or name a branch, tag or commit that exists",
		},
		"sandbox-open": {
			fault.NotFound: "sandbox-list shows the names; sandbox-create makes a new one",
			fault.Conflict: "another agent works there: sandbox-create a sandbox of your own",
		},
		"sandbox-read": hidden, "sandbox-edit": hidden, "sandbox-files": hidden, "sandbox-search": hidden,
		"sandbox-snapshot": {fault.AlreadyExists: "choose another label, or leave it out"},
		"sandbox-write":    {fault.Denied: "that path is read-only inside: write below the project, ~ or /tmp"},
		"sandbox-diff":     {fault.NotFound: "sandbox-list shows the sandboxes, sandbox-files the files"},
		"sandbox-update":   {fault.Conflict: "sandbox-update with markers leaves the conflicts in the files for you to resolve"},
		"sandbox-service":  {fault.NotFound: "sandbox-service with action status lists the services; the human adds one in .litterbox.toml"},
	}
}

// failure is an error as clients get it: a result, so that the model sees it
// and can act.
func failure(name string, err error) *sdk.CallToolResult {
	kind := kindOf(err)
	hint, next := fault.HintOf(err), toolSteps()[name][kind]
	human := slices.ContainsFunc([]string{"litterbox ", "findmnt ", "git "}, func(program string) bool { return strings.HasPrefix(hint, program) })
	switch {
	case hint != "" && !human:
		next = hint // it knows the case
	case next != "":
	case human:
		next = "ask the human to run: " + hint
	default:
		next = nextSteps()[kind]
	}
	cause, next := limited(err.Error()), limited(next)
	return &sdk.CallToolResult{
		IsError: true,
		Content: []sdk.Content{&sdk.TextContent{Text: "error: " + cause + "\nkind: " + string(kind) + "\nnext: " + next}},
		Meta:    sdk.Meta{errorKey: map[string]string{"kind": string(kind), "cause": cause, "next": next}},
	}
}

// inProject is an error that names files of the project as other answers do:
// relative to it, for the next call.
type inProject struct {
	error
	project string
}

func (e inProject) Error() string {
	return strings.ReplaceAll(e.error.Error(), `"`+e.project+"/", `"`)
}

func (e inProject) Unwrap() error { return e.error }

// limited is printable text of a bearable length: errors quote their subject, which
// may be ten megabytes.
func limited(text string) string {
	const most = 2 << 10
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return printable(text)
}

// kindOf is fault.KindOf that also knows the two errors of a context.
func kindOf(err error) fault.Kind {
	kind := fault.KindOf(err)
	switch {
	case kind != fault.Internal:
	case errors.Is(err, context.Canceled):
		kind = fault.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		kind = fault.Timeout
	}
	return kind
}
