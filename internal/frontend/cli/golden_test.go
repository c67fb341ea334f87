package cli_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// exportFake has a golden whose archive is one word.
type exportFake struct{ *fake }

func (exportFake) ExportGolden(_ context.Context, _, _, _ string, to io.Writer) (engine.Golden, error) {
	_, err := io.WriteString(to, "archive")
	return engine.Golden{Name: "default"}, err
}

// Without a file an archive goes to standard output, except to a terminal.
func TestAGoldenIsNotWrittenToATerminal(t *testing.T) {
	s := newScreen(t)
	session := s.session(nil)
	session.Engine = exportFake{&fake{}}
	if code := session.Run(t.Context(), "golden", "export"); code != 2 {
		t.Errorf("exit code %d", code)
	}
	shown := s.shown(t)
	if !strings.Contains(shown, "cannot write an archive to a terminal") || !strings.Contains(shown, "litterbox golden export -o golden.tgz") {
		t.Errorf("shown: %q", shown)
	}
	piped, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer piped.Close()
	session.Stdout = piped
	if code := session.Run(t.Context(), "golden", "export"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got, err := os.ReadFile(piped.Name()); err != nil || string(got) != "archive" {
		t.Errorf("written: %q, %v", got, err)
	}
}

// An error names the file that was asked for, and no temporary one.
func TestGoldenExportIntoNoDirectory(t *testing.T) {
	target := filepath.Join(t.TempDir(), "none", "golden.tgz")
	out := lb(t, &fake{}, "", "golden", "export", "-o", target)
	wantOutcome(t, out, outcome{3, "", "litterbox: cannot write " + strconv.Quote(target) + ": no such file or directory\n  try: mkdir -p " + filepath.Dir(target) + "\n"})
}
