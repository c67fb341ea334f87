package feed_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/local"
)

// asked counts the requests besides the listing.
type asked struct {
	feed.Source
	contents *[]string
}

func (a asked) Content(ctx context.Context, path string) (io.ReadCloser, error) {
	*a.contents = append(*a.contents, path)
	return a.Source.Content(ctx, path)
}

// Small files that have just changed come with the listing, as on disk;
// everything else is asked for.
func TestContentComesWithTheListing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{"dir/small": "small\n", "empty": "", "large": strings.Repeat("large\n", 5000), "edge": strings.Repeat("x", 16<<10)}
	for name, content := range files {
		path := filepath.Join(dir, "upper", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	hollow, err := os.Create(filepath.Join(dir, "upper", "hollow"))
	if err != nil {
		t.Fatal(err)
	}
	files["hollow"] = strings.Repeat("\x00", 8<<10)
	if err := errors.Join(hollow.Truncate(8<<10), hollow.Close()); err != nil {
		t.Fatal(err)
	}
	var contents []string
	changes, err := feed.Workspace{Source: asked{feed.From(local.Files{Dir: dir}), &contents}}.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Close()
	for name, want := range files {
		f, err := changes.File(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		again, changed := f.Again()
		holes, hollow := f.Holes()
		if err := errors.Join(err, changed, hollow, f.Close()); err != nil || string(got) != want || again != f.Entry() || f.Entry().Size != int64(len(want)) || !f.Entry().Executable != (name == "hollow") {
			t.Errorf("%s: %d bytes, %+v and %+v, %v", name, len(got), f.Entry(), again, err)
		}
		if name == "hollow" && holes != 8<<10 && f.Entry().Held < 8<<10 {
			t.Errorf("%d bytes of it are holes", holes)
		}
	}
	if got := strings.Join(contents, " "); got != "large" {
		t.Errorf("asked for: %q", got)
	}
}

// A machine that says more, less or too much of what comes with a listing is not
// believed at all.
func TestHostileContentInAListing(t *testing.T) {
	t.Parallel()
	inline := func(list *text, name string, size uint64, content string) *text {
		list.begin('i', name)
		list.number(0).number(size).number(size).number(0).number(0).number(0).number(0).number(uint64(len(content)))
		list.WriteString(content)
		return list
	}
	full := strings.Repeat("x", 128<<10)
	much := listing()
	for n := range 33 {
		inline(much, "f"+string(rune('A'+n)), 128<<10, full)
	}
	if _, err := take(t, said{list: inline(listing(), "a", 5, "hello").end().number(1).Bytes()}, feed.Limits{}); err != nil {
		t.Fatalf("the control is refused: %v", err)
	}
	for name, bad := range map[string]*text{
		"less than it says": inline(listing(), "a", 6, "hello").end().number(1),
		"more than it says": inline(listing(), "a", 4, "hello").end().number(1),
		"a large file":      inline(listing(), "a", 128<<10+1, full+"x").end().number(1),
		"too much":          much.end().number(33),
		"cut off":           inline(listing(), "a", 5, "hel"),
	} {
		if changes, err := take(t, said{list: bad.Bytes()}, feed.Limits{}); !errors.Is(err, workspace.ErrUnknown) {
			t.Errorf("%s is taken: %v, %v", name, changes != nil, err)
		}
	}
}
