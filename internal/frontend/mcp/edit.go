package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// editMost is the largest file that is edited, in bytes.
const editMost = 16 << 20

type editArguments struct {
	Path    string `json:"path" jsonschema:"relative to the project, or absolute inside the sandbox"`
	Old     string `json:"old" jsonschema:"the text to replace, exactly, with enough around it to occur once"`
	New     string `json:"new" jsonschema:"what takes its place"`
	Message string `json:"message" jsonschema:"what and why, in one line: the commit's message"`
}

func (a editArguments) check() error {
	switch {
	case a.Old == "":
		return fmt.Errorf("old is empty: name the text to replace; a new file is for sandbox-write")
	case a.Old == a.New:
		return fmt.Errorf("old and new are the same")
	}
	return errors.Join(path(a.Path, "name the file to edit"), message(a.Message))
}

func (a editArguments) logged() map[string]any {
	return map[string]any{"path": a.Path, "old": engine.Digest(a.Old), "new": engine.Digest(a.New), "message": a.Message}
}

type editResult struct {
	Path   string   `json:"path"`
	Line   int      `json:"line" jsonschema:"where the replacement begins"`
	Commit string   `json:"commit"`
	Notes  []string `json:"notes"`
}

func (r editResult) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "replaced at line %d of %s, commit %s\n", r.Line, r.Path, short(r.Commit))
	writeNotes(&b, r.Notes)
	return b.String()
}

func runEdit(ctx context.Context, c *call, in editArguments) (editResult, error) {
	content, view, err := c.page(ctx, readArguments{Path: in.Path}, editMost+1)
	if err != nil {
		return editResult{}, err
	}
	if len(content) > editMost {
		return editResult{}, fault.New(fault.Invalid, "cannot edit %q: it has %d bytes, and the limit is %d", in.Path, view.Size, editMost).
			WithHint("sandbox-exec with a program such as sed")
	}
	at, err := once(in.Path, content, []byte(in.Old))
	if err != nil {
		return editResult{}, err
	}
	sum := sha256.Sum256(content)
	changed := make([]byte, 0, len(content)-len(in.Old)+len(in.New))
	changed = append(append(append(changed, content[:at]...), in.New...), content[at+len(in.Old):]...)
	made, notes, err := c.Engine.Write(ctx, engine.WriteRequest{
		Dir: c.Dir, Name: c.hold.Name, Path: in.Path, Message: in.Message, Content: bytes.NewReader(changed),
		Guarded: true, Visible: true, Expect: hex.EncodeToString(sum[:]),
	})
	if err != nil {
		return editResult{}, err
	}
	c.outcome.Commit = made.Commit
	return editResult{Path: printable(in.Path), Line: lineOf(content, at), Commit: made.Commit, Notes: notesOf(notes)}, nil
}

// once finds the one place where old occurs.
func once(path string, content, old []byte) (int, error) {
	at := bytes.Index(content, old)
	if at < 0 {
		err := fault.New(fault.NotFound, "cannot edit %q: old does not occur in it", path).
			WithHint("sandbox-read it again: old must be there exactly, white space included")
		if bytes.Contains(content, []byte("\r\n")) && !bytes.Contains(old, []byte("\r\n")) {
			err = err.WithHint("its lines end in CR LF: write them so in old and new")
		}
		return 0, err
	}
	lines := []string{strconv.Itoa(lineOf(content, at))}
	for from := at + 1; len(lines) < 5; {
		next := bytes.Index(content[from:], old)
		if next < 0 {
			break
		}
		from += next
		lines = append(lines, strconv.Itoa(lineOf(content, from)))
		from++
	}
	if len(lines) > 1 {
		return 0, fault.New(fault.Invalid, "cannot edit %q: old occurs more than once, in lines %s", path, strings.Join(lines, ", ")).
			WithHint("put more of what stands around it into old")
	}
	return at, nil
}

func lineOf(content []byte, at int) int { return bytes.Count(content[:at], []byte{'\n'}) + 1 }
