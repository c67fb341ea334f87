package program

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Page requires a page of the documentation, at a path relative to the test's package,
// to have the text made from the test's table; with update it writes the page first.
func Page(t *testing.T, path, text string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), text); diff != "" {
		t.Errorf("%s is not what the table says (run this test with -update):\n%s", path, diff)
	}
}
