package mcp

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

const (
	readDefault = 10_000  // bytes; as much as clients pass on to a model undivided
	readMost    = 200_000 // bytes of one page
	mediaMost   = 2 << 20 // bytes of an image or a sound, which are of no use in pages
)

type readArguments struct {
	Path    string `json:"path" jsonschema:"in the project, or absolute"`
	Line    int64  `json:"line,omitempty" jsonschema:"first line, from 1"`
	EndLine int64  `json:"end_line,omitempty" jsonschema:"last line"`
	Offset  int64  `json:"offset,omitempty" jsonschema:"first byte, instead of line"`
	Limit   int64  `json:"limit,omitempty" jsonschema:"most bytes; default 10000, at most 200000"`
}

func (a readArguments) check() error {
	switch {
	case a.Line < 0 || a.EndLine < 0 || a.Offset < 0 || a.Limit < 0:
		return fmt.Errorf("line, end_line, offset and limit cannot be negative")
	case a.EndLine > 0 && (a.EndLine < a.Line || a.Offset > 0):
		return fmt.Errorf("end_line is %d and must be the line, or one after it", a.EndLine)
	case a.Line > 1 && a.Offset > 0:
		return fmt.Errorf("line and offset exclude each other")
	case a.Limit > readMost:
		return fmt.Errorf("limit is %d and must be at most %d", a.Limit, readMost)
	}
	return path(a.Path, "sandbox-files lists what there is")
}

func (a readArguments) logged() map[string]any {
	return map[string]any{"path": a.Path, "line": a.Line, "end_line": a.EndLine, "offset": a.Offset, "limit": a.Limit}
}

type readResult struct {
	Path       string `json:"path"`
	Size       int64  `json:"size" jsonschema:"bytes of the whole file"`
	Type       string `json:"type" jsonschema:"MIME type"`
	Binary     bool   `json:"binary" jsonschema:"then content is empty, and the bytes follow it"`
	Offset     int64  `json:"offset" jsonschema:"of the first byte here"`
	NextOffset int64  `json:"next_offset,omitempty" jsonschema:"where the next page begins; missing at the end"`
	Content    string `json:"content"`
	Note       string `json:"note,omitempty"`
	raw        []byte
}

func (r readResult) text() string {
	var b strings.Builder
	if r.Binary {
		fmt.Fprintf(&b, "binary, %s, %d bytes\n", r.Type, r.Size)
	} else {
		b.WriteString(r.Content)
	}
	if r.NextOffset > 0 && (!r.Binary || len(r.raw) > 0) {
		fmt.Fprintf(&b, "\n[bytes %d to %d of %d; go on with offset %d]", r.Offset, r.NextOffset, r.Size, r.NextOffset)
	}
	if r.Note != "" {
		fmt.Fprintf(&b, "\n[%s]", r.Note)
	}
	if b.Len() == 0 {
		return "[nothing: the file has " + fmt.Sprint(r.Size) + " bytes]"
	}
	return b.String()
}

// blocks has binary content in its own type.
func (r readResult) blocks() []sdk.Content {
	switch {
	case !r.Binary || len(r.raw) == 0:
		return nil
	case strings.HasPrefix(r.Type, "image/"):
		return []sdk.Content{&sdk.ImageContent{Data: r.raw, MIMEType: r.Type}}
	case strings.HasPrefix(r.Type, "audio/"):
		return []sdk.Content{&sdk.AudioContent{Data: r.raw, MIMEType: r.Type}}
	}
	return []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{
		URI: "sandbox://" + r.Path, MIMEType: r.Type, Blob: r.raw,
	}}}
}

func runRead(ctx context.Context, c *call, in readArguments) (readResult, error) {
	limit := in.Limit
	switch {
	case limit != 0:
	case in.EndLine > 0:
		limit = readMost
	default:
		limit = readDefault
	}
	page, view, err := c.page(ctx, in, limit)
	if err != nil {
		return readResult{}, c.directory(ctx, in.Path, err)
	}
	out := readResult{Path: printable(string(view.Path)), Size: view.Size, Offset: view.Offset, Type: http.DetectContentType(page)}
	text := bytes.IndexByte(page, 0) < 0 && (strings.HasPrefix(out.Type, "text/") || utf8.Valid(page))
	if !text {
		media := strings.HasPrefix(out.Type, "image/") || strings.HasPrefix(out.Type, "audio/")
		if media && view.Offset == 0 && view.Size > limit && view.Size <= mediaMost {
			if page, view, err = c.page(ctx, in, mediaMost); err != nil {
				return readResult{}, err
			}
		}
		out.Binary = true
		if media || c.Structured {
			out.raw = page
		}
		if end := view.Offset + int64(len(page)); end < view.Size {
			out.NextOffset = end
		}
		return out, nil
	}
	if lines, all := firstLines(page, in); all {
		page = lines
	} else if end := view.Offset + int64(len(page)); end < view.Size {
		page = wholeLines(page)
		out.NextOffset = view.Offset + int64(len(page))
	}
	if strings.HasPrefix(out.Type, "text/plain") {
		out.Type = "text/plain; charset=utf-8"
	}
	if out.Content = string(page); !utf8.ValidString(out.Content) {
		out.Content = strings.ToValidUTF8(out.Content, "\ufffd")
		out.Note = "not UTF-8: bytes that are none are shown as \ufffd"
	}
	return out, nil
}

// directory words the error of reading a directory.
func (c *call) directory(ctx context.Context, path string, err error) error {
	if fault.KindOf(err) != fault.Invalid {
		return err
	}
	if _, _, listErr := c.Engine.Find(ctx, c.place(), engine.FindRequest{Path: []byte(path), Limit: 1}); listErr != nil {
		return err
	}
	return fault.New(fault.Invalid, "cannot read %q: it is a directory", path).WithHint("sandbox-files with this path lists it")
}

// firstLines cuts a page after the last wanted line. all reports whether that line
// is complete.
func firstLines(page []byte, in readArguments) (lines []byte, all bool) {
	if in.EndLine == 0 {
		return page, false
	}
	end := 0
	for range in.EndLine - max(in.Line, 1) + 1 {
		next := bytes.IndexByte(page[end:], '\n') + 1
		if next == 0 {
			return page, false
		}
		end += next
	}
	return page[:end], true
}

// page reads at most limit bytes of the file.
func (c *call) page(ctx context.Context, in readArguments, limit int64) ([]byte, engine.FileView, error) {
	buffer := &bounded{limit: int(limit)}
	view, err := c.Engine.Show(ctx, engine.ShowRequest{
		Place: c.place(), Path: in.Path, Line: in.Line, Offset: in.Offset, Limit: limit, Content: buffer,
	})
	return buffer.kept, view, err
}

// wholeLines cuts a page at the end of a line, or at least of a character.
func wholeLines(page []byte) []byte {
	if end := bytes.LastIndexByte(page, '\n') + 1; end > len(page)/2 {
		return page[:end]
	}
	for cut := 1; cut < utf8.UTFMax && cut < len(page); cut++ {
		if last := page[len(page)-cut:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return page[:len(page)-cut]
			}
			break
		}
	}
	return page
}
