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

// editsMost is how many replacements one call makes.
const editsMost = 100

type edit struct {
	Old        string `json:"old,omitempty"`
	New        string `json:"new,omitempty"`
	Line       int    `json:"line,omitempty"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

func (e edit) check() error {
	switch {
	case e.Line < 0:
		return fmt.Errorf("line is %d and must be 1 or more", e.Line)
	case e.Old == "" && e.Line == 0:
		return fmt.Errorf("old is empty: name the text to replace, or its line; a new file is for sandbox-write")
	case e.Old == e.New && e.Old != "":
		return fmt.Errorf("old and new are the same")
	case e.ReplaceAll && e.Line > 0:
		return fmt.Errorf("line and replace_all exclude each other")
	}
	return nil
}

type editArguments struct {
	Path       string `json:"path" jsonschema:"in the project, or absolute"`
	Old        string `json:"old,omitempty" jsonschema:"the exact text to replace, which occurs once"`
	New        string `json:"new,omitempty" jsonschema:"what takes its place"`
	Line       int    `json:"line,omitempty" jsonschema:"where old begins, if it occurs more than once; without old, the line to replace"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
	Edits      []edit `json:"edits,omitempty" jsonschema:"several, in order, all or none"`
	Message    string `json:"message" jsonschema:"what and why, in one line: the commit's message"`
}

// all lists the requested replacements.
func (a editArguments) all() []edit {
	own := edit{Old: a.Old, New: a.New, Line: a.Line, ReplaceAll: a.ReplaceAll}
	if len(a.Edits) > 0 && own == (edit{}) {
		return a.Edits
	}
	return append([]edit{own}, a.Edits...)
}

func (a editArguments) check() error {
	edits := a.all()
	if len(edits) > editsMost {
		return fmt.Errorf("%d edits are too many: at most %d in one call", len(edits), editsMost)
	}
	for i, e := range edits {
		if err := e.check(); err != nil {
			return numbered(err, i, len(edits))
		}
	}
	return errors.Join(path(a.Path, "name the file to edit"), message(a.Message))
}

// numbered says which of several edits an error is about.
func numbered(err error, i, of int) error {
	if of == 1 {
		return err
	}
	return fault.Wrap("", err, "edit %d of %d", i+1, of).WithHint("%s", fault.HintOf(err))
}

func (a editArguments) logged() map[string]any {
	edits := []map[string]any{}
	for _, e := range a.all() {
		edits = append(edits, map[string]any{"old": engine.Digest(e.Old), "new": engine.Digest(e.New), "line": e.Line})
	}
	return map[string]any{"path": a.Path, "edits": edits, "message": a.Message}
}

type editResult struct {
	Path   string   `json:"path"`
	Lines  []int    `json:"lines" jsonschema:"where the replacements began, the first hundred"`
	Count  int      `json:"count" jsonschema:"replacements"`
	Step   int      `json:"step"`
	Commit string   `json:"commit" jsonschema:"on the branch outside; git inside does not have it"`
	Notes  []string `json:"notes"`
}

func (r editResult) text() string {
	var b strings.Builder
	if r.Count == 1 {
		fmt.Fprintf(&b, "replaced at line %d of %s, step %d\n", r.Lines[0], r.Path, r.Step)
	} else {
		fmt.Fprintf(&b, "replaced %d times in %s, at lines %s, step %d\n", r.Count, r.Path, someLines(r.Lines, r.Count), r.Step)
	}
	writeNotes(&b, r.Notes)
	return b.String()
}

// someLines lists the first lines.
func someLines(lines []int, total int) string {
	const most = 10
	var shown []string
	for _, line := range lines[:min(len(lines), most)] {
		shown = append(shown, strconv.Itoa(line))
	}
	text := strings.Join(shown, ", ")
	if total > len(shown) {
		text += " …"
	}
	return text
}

func runEdit(ctx context.Context, c *call, in editArguments) (editResult, error) {
	content, hidden, err := c.wholeFile(ctx, in.Path)
	if err != nil {
		return editResult{}, err
	}
	out := editResult{Path: printable(in.Path), Lines: []int{}}
	changed, edits := content, in.all()
	for i, e := range edits {
		made, err := e.apply(in.Path, changed, !hidden)
		if err != nil {
			return editResult{}, numbered(err, i, len(edits))
		}
		changed = made.content
		out.Count += made.count
		out.Lines = append(out.Lines, made.lines[:min(len(made.lines), 100-len(out.Lines))]...)
	}
	if bytes.Equal(changed, content) {
		return editResult{}, fault.New(fault.Invalid, "cannot edit %q: these edits leave it as it is", in.Path)
	}
	sum := sha256.Sum256(content)
	made, notes, err := c.Engine.Write(ctx, engine.WriteRequest{
		Dir: c.Dir, Name: c.hold.Name, Path: in.Path, Message: in.Message, Content: bytes.NewReader(changed),
		Guarded: true, Expect: hex.EncodeToString(sum[:]),
	})
	if err != nil {
		return editResult{}, err
	}
	c.outcome.Commit = made.Commit
	out.Step, out.Commit, out.Notes = made.Number, made.Commit, c.news(notes, "")
	return out, nil
}

// wholeFile reads a file to edit. A hidden one may be edited, as it may be written,
// but is not shown: an error does not quote it either.
func (c *call) wholeFile(ctx context.Context, path string) (content []byte, hidden bool, err error) {
	buffer := &bounded{limit: editMost + 1}
	request := engine.ShowRequest{Place: c.place(), Path: path, Limit: editMost + 1, Content: buffer}
	view, err := c.Engine.Show(ctx, request)
	if fault.KindOf(err) == fault.Denied {
		request.Hidden, hidden = true, true
		view, err = c.Engine.Show(ctx, request)
	}
	if err != nil {
		return nil, hidden, err
	}
	if len(buffer.kept) > editMost {
		return nil, hidden, fault.New(fault.Invalid, "cannot edit %q: it has %d bytes, and the limit is %d", path, view.Size, editMost).
			WithHint("sandbox-exec with a program such as sed")
	}
	return buffer.kept, hidden, nil
}
