package cli_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// list fits a narrow terminal: what matters least is left out, and the name and the
// state stay.
func TestListFitsFiftyColumns(t *testing.T) {
	e := &fake{list: func(string, bool) ([]engine.Info, error) {
		return []engine.Info{info("fix-login"), info("a-longer-name-of-a-sandbox")}, nil
	}}
	for _, columns := range []int{50, 100} {
		s := newScreen(t)
		if err := pty.Setsize(s.program, &pty.Winsize{Rows: 30, Cols: uint16(columns)}); err != nil {
			t.Fatal(err)
		}
		if code := s.session(e).Run(t.Context(), "list"); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		lines := strings.Split(strings.TrimSpace(s.shown(t)), "\n")
		if head := strings.Fields(lines[0]); len(lines) != 3 || head[0] != "NAME" || head[1] != "STATE" {
			t.Errorf("at %d columns: %q", columns, lines)
		}
		for _, line := range lines {
			if width := utf8.RuneCountInString(strings.TrimRight(line, "\r")); width > columns {
				t.Errorf("%d columns, the terminal has %d: %q", width, columns, line)
			}
		}
	}
}
