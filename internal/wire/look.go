package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// ShowRequest asks [ShowFile] for a part of a file: from a byte, or from a line
// if Line is greater than 1.
type ShowRequest struct {
	Path   []byte
	Line   int64
	Offset int64
	Limit  int64 // bytes; 0 has no limit
	Hidden bool  // allow a hidden file, but nothing in a .git
}

// ShowFile copies a part of a file to w. It fails with fault.Denied for hidden
// files, also behind links.
func ShowFile(ctx context.Context, s Stream, r ShowRequest, w io.Writer) (View, error) {
	var view View
	err := call(ctx, s, Request{Op: OpView, Path: r.Path, Line: r.Line, Offset: r.Offset, Limit: r.Limit, Hidden: r.Hidden}, nil, w, &view)
	if err == nil && (view.Size < 0 || view.Offset < 0) {
		return View{}, fault.New(fault.Unavailable, "cannot use the size that the sandbox names")
	}
	return view, err
}

// PutRequest is a file to write with [PutFile].
type PutRequest struct {
	Path    []byte
	Mode    uint32 // 0 keeps that of an existing file
	Visible bool   // refuse hidden files
	Expect  string // SHA-256 of the content to replace; empty: any
	Content io.Reader
}

// PutFile is [Write] for callers that may not write everything: nothing in a
// .git directory, and nothing that changed since it was read (fault.Conflict).
func PutFile(ctx context.Context, s Stream, r PutRequest) (FileInfo, error) {
	var info FileInfo
	err := call(ctx, s, Request{Op: OpPut, Path: r.Path, Mode: r.Mode, Visible: r.Visible, Expect: r.Expect}, r.Content, nil, &info)
	return info, err
}

// FindRequest is a walk that [FindFiles] and [SearchFiles] ask for. Hidden and
// ignored files are left out.
type FindRequest struct {
	Path    []byte // a directory; for a search also a file
	Glob    []byte // empty: all
	Pattern []byte // searches only
	Fold    bool
	Context int // lines to show before and after a match; searches only
	Limit   int
}

// FindFiles lists files below a directory, sorted, at most Limit of them.
func FindFiles(ctx context.Context, s Stream, r FindRequest) ([]Entry, Found, error) {
	return find[Entry](ctx, s, Request{Op: OpFind, Path: r.Path, Glob: r.Glob, Limit: int64(r.Limit)}, r.Limit)
}

// SearchFiles looks for lines that match a regular expression, at most Limit.
func SearchFiles(ctx context.Context, s Stream, r FindRequest) ([]Match, Found, error) {
	request := Request{Op: OpSearch, Path: r.Path, Glob: r.Glob, Pattern: r.Pattern, Fold: r.Fold, Context: int64(r.Context), Limit: int64(r.Limit)}
	all, found, err := find[Match](ctx, s, request, r.Limit)
	for i := range all {
		all[i].Text = printable(all[i].Text)
	}
	return all, found, err
}

func find[T any](ctx context.Context, s Stream, request Request, limit int) ([]T, Found, error) {
	list := &jsonLines[T]{limit: limit}
	var found Found
	err := call(ctx, s, request, nil, list, &found)
	if found.Files < 0 || found.Skipped < 0 {
		err = fault.New(fault.Unavailable, "cannot use the numbers that the sandbox names")
	}
	found.Stopped = printable(found.Stopped)
	return list.all, found, err
}

// maxListed bounds how much of our memory a list takes, no matter what the guest sends.
const maxListed = 8 << 20

// jsonLines collects values that arrive one per line.
type jsonLines[T any] struct {
	limit int
	rest  []byte
	all   []T
	size  int
}

func (l *jsonLines[T]) Write(p []byte) (int, error) {
	if l.size += len(p); l.size > maxListed {
		return 0, fault.New(fault.Unavailable, "cannot understand the sandbox: its list does not end")
	}
	// Only the new part is searched: it may come byte by byte.
	seen := len(l.rest)
	l.rest = append(l.rest, p...)
	for ; ; seen = 0 {
		end := bytes.IndexByte(l.rest[seen:], '\n')
		if end < 0 {
			return len(p), nil
		}
		end += seen
		var one T
		if err := json.Unmarshal(l.rest[:end], &one); err != nil {
			return 0, fault.Wrap(fault.Unavailable, err, "cannot understand the sandbox's list")
		}
		if len(l.all) < l.limit {
			l.all = append(l.all, one)
		}
		l.rest = l.rest[end+1:]
	}
}
