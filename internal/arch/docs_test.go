package arch_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Documentation that names missing files misleads more than none.
func TestPathsInDocumentationExist(t *testing.T) {
	dir := root(t)
	for _, file := range files(t, dir) {
		if !strings.HasSuffix(file, ".md") || !strings.HasPrefix(file, "docs/") && file != "README.md" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, named := range pathsIn(path.Dir(file), string(data)) {
			matches, err := filepath.Glob(filepath.Join(dir, named))
			if err != nil || len(matches) == 0 {
				t.Errorf("%s names %s, which does not exist", file, named)
			}
		}
	}
}

// topDirs are the prefixes of repository paths.
var topDirs = []string{"cmd/", "internal/", "test/", "docs/", ".ci/"}

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	linked = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	suffix = regexp.MustCompile(`(:\d+(-\d+)?|#.*)$`) // a line or a heading
	plain  = regexp.MustCompile(`^[\w.*/@+-]+$`)
)

// pathsIn lists what a page in the directory dir names of the repository: in
// backticks as a path from the root, and as a link from where the page is.
func pathsIn(dir, page string) []string {
	var found []string
	for _, match := range quoted.FindAllStringSubmatch(page, -1) {
		name := suffix.ReplaceAllString(match[1], "")
		named := slices.ContainsFunc(topDirs, func(top string) bool { return strings.HasPrefix(name, top) })
		if named && plain.MatchString(name) {
			found = append(found, path.Clean(name))
		}
	}
	for _, match := range linked.FindAllStringSubmatch(page, -1) {
		name := suffix.ReplaceAllString(match[1], "")
		if name == "" || strings.Contains(name, ":") {
			continue // a heading of this page, or another site
		}
		found = append(found, path.Join(dir, name))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestPathsIn(t *testing.T) {
	page := "See `internal/wire/link.go:12`, `internal/driver/` and `docs/adr/*.md`;\n" +
		"not `git diff`, `.litterbox.toml`, `internal/… more` or `https://example.com/internal/x`.\n" +
		"[threats](security.md#network) [top](../README.md) [site](https://example.com) [here](#there)\n"
	want := []string{"README.md", "docs/adr/*.md", "docs/security.md", "internal/driver", "internal/wire/link.go"}
	if diff := cmp.Diff(want, pathsIn("docs", page)); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}
