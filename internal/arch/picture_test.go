package arch_test

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/packages.md anew")

// The picture of packages in the documentation is made from the imports.
func TestPictureOfPackages(t *testing.T) {
	dir := root(t)
	tree, err := readTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	graph := map[string][]string{}
	for pkg, used := range tree {
		if strings.HasPrefix(pkg, "test/") || pkg == "arch" || len(used.code) == 0 && !hasCode(t, dir, pkg) {
			continue
		}
		var imports []string
		for _, list := range used.code {
			imports = append(imports, list...)
		}
		slices.Sort(imports)
		graph[pkg] = slices.Compact(imports)
	}
	got := picture(graph, func(pkg string) string { return synopsis(t, dir, pkg) })
	file := filepath.Join(dir, "docs/packages.md")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/packages.md is not what the imports say; write it anew: go test ./internal/arch -update\n%s", diff)
	}
}

// picture draws packages in floors: each imports only packages of lower floors.
func picture(graph map[string][]string, about func(pkg string) string) string {
	floors := map[int][]string{}
	heights := map[string]int{}
	var height func(pkg string) int
	height = func(pkg string) int {
		if h, known := heights[pkg]; known {
			return h
		}
		h := 0
		for _, imported := range graph[pkg] {
			h = max(h, height(imported)+1)
		}
		heights[pkg] = h
		return h
	}
	for pkg := range graph {
		floors[height(pkg)] = append(floors[height(pkg)], pkg)
	}
	var b strings.Builder
	b.WriteString("# Packages\n\n" +
		"Made from the imports by `go test ./internal/arch -update`; a test of `internal/arch` holds it to them. " +
		"A package imports packages of lower floors only. Who may import whom, and why, stands in `internal/arch/policy_test.go`.\n")
	for _, floor := range slices.Backward(slices.Sorted(maps.Keys(floors))) {
		fmt.Fprintf(&b, "\n## Floor %d\n\n| package | what it is | imports |\n|---|---|---|\n", floor)
		slices.Sort(floors[floor])
		for _, pkg := range floors[floor] {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", pkg, about(pkg), strings.Join(graph[pkg], ", "))
		}
	}
	return b.String()
}

func TestPicture(t *testing.T) {
	got := picture(map[string][]string{"a": nil, "b": {"a"}, "c": {"a", "b"}, "d": {"a"}}, strings.ToUpper)
	_, floors, _ := strings.Cut(got, "\n## ")
	const head = "\n\n| package | what it is | imports |\n|---|---|---|\n"
	want := "Floor 2" + head + "| c | C | a, b |\n\n## Floor 1" + head + "| b | B | a |\n| d | D | a |\n\n## Floor 0" + head + "| a | A |  |\n"
	if diff := cmp.Diff(want, floors); diff != "" {
		t.Errorf("floors (-want +got):\n%s", diff)
	}
}

// packageDir is the directory of a package.
func packageDir(dir, pkg string) string {
	if strings.HasPrefix(pkg, "cmd/") {
		return filepath.Join(dir, pkg)
	}
	return filepath.Join(dir, "internal", pkg)
}

func sources(t *testing.T, dir, pkg string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(packageDir(dir, pkg), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

func hasCode(t *testing.T, dir, pkg string) bool { return len(sources(t, dir, pkg)) > 0 }

// synopsis is the first sentence of a package's comment.
func synopsis(t *testing.T, dir, pkg string) string {
	t.Helper()
	for _, name := range sources(t, dir, pkg) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if text := file.Doc.Text(); strings.HasPrefix(text, "Package ") {
			text, _, _ = strings.Cut(strings.ReplaceAll(text, "\n", " "), ". ")
			text = strings.TrimSuffix(strings.TrimSpace(text), ".")
			_, text, _ = strings.Cut(strings.TrimPrefix(text, "Package "), " ")
			return strings.ReplaceAll(text, "|", `\|`)
		}
	}
	return ""
}
