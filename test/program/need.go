package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Need skips a test if a program is missing, and says which. Where
// LITTERBOX_TEST_REQUIRE (comma-separated) names it, the test fails instead: a skip
// would be an empty success. Debian keeps the servers of PostgreSQL off the PATH.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
			continue
		}
		if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), name) {
			t.Fatalf("%s is not installed, and LITTERBOX_TEST_REQUIRE demands it", name)
		}
		t.Skipf("%s is not installed", name)
	}
}
