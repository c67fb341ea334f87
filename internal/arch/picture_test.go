package arch_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/packages.md")

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
	got := picture(graph, func(pkg string) string { return synopsis(t, dir, pkg) }, func(pkg string) size { return sizeOf(t, dir, pkg) })
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
	said, sizes := unsized(string(want))
	is, now := unsized(got)
	if diff := cmp.Diff(said, is); diff != "" {
		t.Errorf("docs/packages.md is not what the imports say; rewrite it: go test ./internal/arch -update\n%s", diff)
	}
	for pkg, was := range sizes {
		if was.far(now[pkg]) {
			t.Errorf("docs/packages.md says %v of %s, which has %v; rewrite it: go test ./internal/arch -update", was, pkg, now[pkg])
		}
	}
}

// size is how much a room holds.
type size struct{ Files, Exported int }

// far reports whether the page misleads: numbers there may lag a little, so
// that not every change must rewrite them.
func (s size) far(now size) bool {
	lags := func(was, is int) bool { return max(was-is, is-was) > 5+was/5 }
	return lags(s.Files, now.Files) || lags(s.Exported, now.Exported)
}

var sizedRow = regexp.MustCompile(`(?m)^\| (\S+) \| (.*) \| (\d+) \| (\d+) \| (.*) \|$`)

// unsized removes the numbers from a page.
func unsized(page string) (rest string, sizes map[string]size) {
	sizes = map[string]size{}
	for _, row := range sizedRow.FindAllStringSubmatch(page, -1) {
		files, _ := strconv.Atoi(row[3])    // digits, by the expression
		exported, _ := strconv.Atoi(row[4]) // likewise
		sizes[row[1]] = size{files, exported}
	}
	return sizedRow.ReplaceAllString(page, "| $1 | $2 | $5 |"), sizes
}

// sizeOf counts the files of a package, and the names that others may use:
// those of its declarations, methods included.
func sizeOf(t *testing.T, dir, pkg string) (s size) {
	t.Helper()
	names := map[string]bool{}
	note := func(of string, name *ast.Ident) {
		if name.IsExported() {
			names[of+name.Name] = true
		}
	}
	for _, name := range sources(t, dir, pkg) {
		s.Files++
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			switch declared := declared.(type) {
			case *ast.FuncDecl:
				of := ""
				if declared.Recv != nil {
					of = receiver(declared.Recv.List[0].Type) + "."
				}
				note(of, declared.Name)
			case *ast.GenDecl:
				for _, spec := range declared.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						note("", spec.Name)
					case *ast.ValueSpec:
						for _, value := range spec.Names {
							note("", value)
						}
					}
				}
			}
		}
	}
	s.Exported = len(names) // one for all systems
	return s
}

// receiver returns the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// picture draws packages in floors: each imports only packages of lower floors.
func picture(graph map[string][]string, about func(pkg string) string, big func(pkg string) size) string {
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
		"A package imports packages of lower floors only. Who may import whom, and why, stands in `internal/arch/policy_test.go`. " +
		"The numbers are those of its files without tests, and of its exported names, methods included; they may lag a little behind.\n")
	for _, floor := range slices.Backward(slices.Sorted(maps.Keys(floors))) {
		fmt.Fprintf(&b, "\n## Floor %d\n\n| package | what it is | files | names | imports |\n|---|---|---|---|---|\n", floor)
		slices.Sort(floors[floor])
		for _, pkg := range floors[floor] {
			is := big(pkg)
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %s |\n", pkg, about(pkg), is.Files, is.Exported, strings.Join(graph[pkg], ", "))
		}
	}
	return b.String()
}

func TestPicture(t *testing.T) {
	got := picture(map[string][]string{"a": nil, "b": {"a"}, "c": {"a", "b"}, "d": {"a"}}, strings.ToUpper,
		func(pkg string) size { return size{len(pkg), int(pkg[0])} })
	_, floors, _ := strings.Cut(got, "\n## ")
	const head = "\n\n| package | what it is | files | names | imports |\n|---|---|---|---|---|\n"
	want := "Floor 2" + head + "| c | C | 1 | 99 | a, b |\n\n## Floor 1" + head + "| b | B | 1 | 98 | a |\n| d | D | 1 | 100 | a |\n\n## Floor 0" + head + "| a | A | 1 | 97 |  |\n"
	if diff := cmp.Diff(want, floors); diff != "" {
		t.Errorf("floors (-want +got):\n%s", diff)
	}
	rest, sizes := unsized(got)
	if strings.Contains(rest, "99") || sizes["c"] != (size{1, 99}) || len(sizes) != 4 {
		t.Errorf("sizes are %v of:\n%s", sizes, rest)
	}
	if (size{10, 100}).far(size{12, 110}) || !(size{10, 100}).far(size{20, 100}) {
		t.Error("what is far is not")
	}
}

// packageDir returns the directory of a package.
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

// synopsis returns the first sentence of a package's comment.
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
