package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every binary executes itself again as its child, and an init function would
// run there too, before anything is given up.
func TestNoInitFunctions(t *testing.T) {
	dir := root(t)
	for _, file := range files(t, dir) {
		if !strings.HasSuffix(file, ".go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join(dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: an init function", file, set.Position(f.Pos()).Line)
			}
		}
	}
}

// files lists the repository's files that are meant to be in it.
func files(t *testing.T, dir string) []string {
	var found []string
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && (entry.Name() == ".git" || name == "bin"):
			return filepath.SkipDir
		case entry.Type().IsRegular() && entry.Name() != ".git": // a linked worktree has a file there
			found = append(found, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// personal returns the part of a path that exists only on one machine: the
// first element, or two if the first is on every machine.
func personal(dir string) string {
	parts := strings.Split(strings.Trim(filepath.ToSlash(dir), "/"), "/")
	shared := []string{"home", "Users", "tmp", "private", "var", "mnt", "opt", "srv", "usr", "src", "go", "builds", "workspace"}
	if len(parts) > 1 && slices.Contains(shared, parts[0]) {
		return "/" + parts[0] + "/" + parts[1] + "/"
	}
	return "/" + parts[0] + "/"
}

// mentions finds an absolute path below prefix in text: not in the middle of a
// longer one.
func mentions(text, prefix string) bool {
	return regexp.MustCompile(`(?m)(^|[^\w./…~})*>$-])` + regexp.QuoteMeta(prefix) + `\w`).MatchString(text)
}

func TestNoPathsOfOneMachine(t *testing.T) {
	dir := root(t)
	if info, err := os.Stat(filepath.Dir(dir)); err != nil || !info.IsDir() {
		t.Fatal(err)
	}
	prefix := personal(dir)
	for _, file := range files(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsRune(string(data), 0) {
			continue // no text
		}
		if mentions(string(data), prefix) {
			t.Errorf("%s holds a path of this machine, below %s", file, prefix)
		}
	}
}

func TestMentions(t *testing.T) {
	got := map[string]bool{}
	const prefix = "/home/ann/"
	for _, text := range []string{
		"see /home/ann/src", `"/home/ann/src"`, "x=/home/ann/a", "/mnt/home/ann/src", "/home/anna/src", "a/home/ann/b", "first\n/home/ann/x",
	} {
		got[text] = mentions(text, prefix)
	}
	want := map[string]bool{
		"see /home/ann/src": true, `"/home/ann/src"`: true, "x=/home/ann/a": true, "/mnt/home/ann/src": false,
		"/home/anna/src": false, "a/home/ann/b": false, "first\n/home/ann/x": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mentions (-want +got):\n%s", diff)
	}
	prefixes := map[string]string{"/home/ann/src/litterbox": "/home/ann/", "/data/litterbox": "/data/", "/tmp/x": "/tmp/x/"}
	for dir, want := range prefixes {
		if got := personal(dir); got != want {
			t.Errorf("personal(%q) = %q, want %q", dir, got, want)
		}
	}
}
