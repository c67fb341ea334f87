package arch_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// longest is the most lines that a file has. A longer one holds more than one
// idea: split it by what it does, and name each part for that.
const longest = 400

func TestFilesHoldOneIdea(t *testing.T) {
	t.Parallel()
	dir := root(t)
	for _, file := range files(t, dir) {
		if !strings.HasSuffix(file, ".go") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(content, []byte("\n")); lines > longest {
			t.Errorf("%s has %d lines; up to %d are allowed", file, lines, longest)
		}
	}
}
