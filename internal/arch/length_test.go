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

// tables are files that are long because they list something.
var tables = map[string]bool{
	"internal/config/keys.go": true, // every key, with what it is for
}

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
		if lines := bytes.Count(content, []byte("\n")); (lines > longest) != tables[file] {
			t.Errorf("%s has %d lines; up to %d are allowed, and more only for tables that are named here", file, lines, longest)
		}
	}
}
