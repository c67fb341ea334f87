package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

// The table of contents leads to every page of docs.
func TestBookIsWhole(t *testing.T) {
	contents, err := os.ReadFile("../../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("../../../docs", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel("../../../docs", path)
		if err != nil {
			return err
		}
		if name != "README.md" && (!strings.HasPrefix(name, "adr/") || name == "adr/README.md") && !strings.Contains(string(contents), "("+filepath.ToSlash(name)+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every command line that a page shows is a command with those flags.
func TestBookTypesCommands(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/howto/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	typed := regexp.MustCompile("(?m)^\\$ litterbox ([^\n#]+)")
	reference := cli.Reference()
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range typed.FindAllStringSubmatch(string(page), -1) {
			words := strings.Fields(line[1])
			name := words[0]
			if len(words) > 1 && strings.Contains(reference, "\n### litterbox "+name+" "+words[1]+"\n") {
				name += " " + words[1]
			}
			_, own, found := strings.Cut(reference, "\n### litterbox "+name+"\n")
			if !found {
				t.Errorf("%s: there is no command %q", filepath.Base(path), name)
				continue
			}
			own, _, _ = strings.Cut(own, "\n### ")
			for _, word := range words {
				flag, _, _ := strings.Cut(word, "=")
				if strings.HasPrefix(flag, "--") && flag != "--" && !strings.Contains(own, flag) && name != "diff" {
					t.Errorf("%s: %s has no flag %s", filepath.Base(path), name, flag)
				}
			}
		}
	}
}
