package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A page that says what a file is for names a word of it in parentheses. A file
// that has lost what it was named for misleads as much as one that is gone.
func TestNamedFilesHoldWhatTheyAreNamedFor(t *testing.T) {
	dir := root(t)
	for _, file := range files(t, dir) {
		if !strings.HasSuffix(file, ".md") || !strings.HasPrefix(file, "docs/") && file != "README.md" && file != "CONTRIBUTING.md" {
			continue
		}
		page, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, named := range namedFor(string(page)) {
			text, err := os.ReadFile(filepath.Join(dir, named.path))
			if err != nil || !strings.Contains(string(text), named.holds) {
				t.Errorf("%s names %s for %q, which is not in it (%v)", file, named.path, named.holds, err)
			}
		}
	}
}

// A newcomer to the project finds each of these changes, and every file that
// it touches, on one page.
func TestChangesAreComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), "docs/architecture/changes.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		found[title] = body
	}
	for change, must := range map[string][]string{
		"A flag of a command":          {"internal/frontend/cli/", "internal/engine/", "test/script/", "docs/reference/commands.md"},
		"A tool for agents":            {"internal/frontend/mcp/tools.go", "test/mcp/", "README.md"},
		"A key of the configuration":   {"internal/config/keys.go", "internal/config/config.go", "docs/reference/configuration.md"},
		"A network preset":             {"internal/egress/preset/services.go", "docs/reference/configuration.md"},
		"A limit":                      {"internal/sandbox/limits.go", "internal/config/limits.go", "internal/keeper/limits.go", "internal/driver/drivertest/"},
		"A driver":                     {"internal/driver/driver.go", "internal/app/child/child.go", "internal/arch/policy_test.go", "docs/packages.md"},
		"An event":                     {"internal/sandbox/event.go", "docs/reference/events.md"},
		"A client":                     {"internal/agents/agents.go", "internal/profile/profile.go", "internal/login/clients.go"},
		"A system call that is denied": {"internal/driver/seccomp/denied.go", "internal/driver/seccomp/cases_linux_test.go", "docs/security.md"},
		"A column of a listing":        {"internal/frontend/cli/list.go", "internal/engine/api.go"},
	} {
		named := namedFor(found[change])
		if len(named) < 3 {
			t.Errorf("%q says of %d files what is in them", change, len(named))
		}
		for _, path := range must {
			if !strings.Contains(found[change], "`"+path) {
				t.Errorf("%q does not name %s", change, path)
			}
		}
	}
}

type named struct{ path, holds string }

var heldBy = regexp.MustCompile("`(\\w[\\w./-]*\\.\\w+)` \\(`([^`\n]+)`\\)")

// namedFor lists what a page says about files: `path` (`word`).
func namedFor(page string) (all []named) {
	for _, match := range heldBy.FindAllStringSubmatch(page, -1) {
		all = append(all, named{match[1], match[2]})
	}
	return all
}

func TestNamedFor(t *testing.T) {
	got := namedFor("See `internal/wire/link.go` (`func Open`) and `README.md` (`make demo`);\nnot `git diff` (`x`), `a/b.go` (plain) or `a/b.go`.")
	want := []named{{"internal/wire/link.go", "func Open"}, {"README.md", "make demo"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(named{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
