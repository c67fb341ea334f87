package process_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

func filtered(t *testing.T, script string, stream io.Reader) io.ReadCloser {
	t.Helper()
	shell, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	r, err := process.Filter(shell, []string{"sh", "-c", script}, []string{"PATH=/usr/bin:/bin"}, stream)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFilter(t *testing.T) {
	large := strings.Repeat("some text\n", 1<<16)
	lost := errors.New("the stream broke off")
	for name, test := range map[string]struct {
		script string
		stream io.Reader
		want   string
		err    string
	}{
		"all of it":         {"cat", strings.NewReader(large), large, ""},
		"nothing":           {"cat", strings.NewReader(""), "", ""},
		"a part is wanted":  {"head -c 4", strings.NewReader(large), "some", ""},
		"it fails":          {"cat; echo it is odd >&2; exit 1", strings.NewReader("x"), "x", "it is odd"},
		"it fails silently": {"exit 3", strings.NewReader(large), "", "sh ended with exit status 3"},
		"the stream fails":  {"cat; exit 1", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(lost)), "x", lost.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := filtered(t, test.script, test.stream)
			got, err := io.ReadAll(r)
			if string(got) != test.want || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("%d bytes %.10q, %v; want %d, %q", len(got), got, err, len(test.want), test.err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Close ends a program that would go on, though the stream says nothing.
func TestFilterIsClosed(t *testing.T) {
	stream, end := io.Pipe()
	defer end.Close()
	r := filtered(t, "echo first; exec cat", stream)
	if n, err := r.Read(make([]byte, 6)); n != 6 || err != nil {
		t.Fatal(n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
