package arch_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// No test runs on a Mac, so what the page about it says is held to the code.

// macPage returns the rows of a section's first table, cell by cell.
func macPage(t *testing.T, section string) [][]string {
	t.Helper()
	page := read(t, "docs/reference/platforms.md")
	_, mac, found := strings.Cut(page, "\n## A Mac\n")
	if section != "" && found {
		_, mac, found = strings.Cut(mac, "\n### "+section+"\n")
	}
	if !found {
		t.Fatalf("the page about a Mac has no section %q", section)
	}
	var rows [][]string
	for line := range strings.Lines(mac) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "|"):
			rows = append(rows, strings.Split(strings.Trim(line, "|"), "|"))
		case len(rows) > 0:
			return rows[2:] // the head and the line below it
		}
	}
	return rows[2:]
}

// words are what a cell has in backticks.
func words(cell string) []string {
	var all []string
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		all = append(all, match[1])
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The commands are those of commands.md; its own test, beside the commands, holds it to them.
func TestMacNamesEveryCommand(t *testing.T) {
	var want, got []string
	for _, match := range regexp.MustCompile(`(?m)^### litterbox (.+)$`).FindAllStringSubmatch(read(t, "docs/reference/commands.md"), -1) {
		want = append(want, match[1])
	}
	for _, row := range macPage(t, "Commands") {
		got = append(got, words(row[0])...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of commands is not what there is (-commands +table); it is in test/machines/mac.md:\n%s", diff)
	}
}

func TestMacNamesEveryDriver(t *testing.T) {
	var want, got []string
	constant := regexp.MustCompile(`(?m)^(?:const |\t)(Name|OwnName|EnvName|SharedName|Docker|Podman|Machines)(?: Kind)? += "([^"]+)"$`)
	for _, file := range files(t, root(t)) {
		if dir := path.Dir(file); !strings.HasPrefix(dir, "internal/driver") || dir == "internal/driver/lima/limactl" || strings.HasSuffix(file, "_test.go") || !strings.HasSuffix(file, ".go") {
			continue
		}
		for _, match := range constant.FindAllStringSubmatch(read(t, file), -1) {
			want = append(want, match[2])
		}
	}
	for _, row := range macPage(t, "Drivers") {
		for _, name := range words(row[0]) {
			if !strings.HasPrefix(name, "--") {
				got = append(got, strings.TrimSuffix(name, ":NAME"))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of drivers is not what there is (-drivers +table); it is in test/machines/mac.md:\n%s", diff)
	}
}

// What is refused is refused in these words, by code that a Mac's program has.
func TestMacQuotesTheProgram(t *testing.T) {
	var code strings.Builder
	for _, file := range macFiles(t) {
		code.WriteString(read(t, file))
	}
	for _, section := range []string{"Commands", "Drivers"} {
		for _, row := range macPage(t, section) {
			quotes := words(row[2])
			if len(quotes) == 0 && strings.Contains(row[1], "unsupported") {
				t.Errorf("nothing says that%sis unsupported", row[0])
			}
			for _, quote := range quotes {
				if !strings.Contains(code.String(), quote) {
					t.Errorf("no code of a Mac says %q", quote)
				}
			}
		}
	}
}

// macFiles lists the files of the program on a Mac, without tests and packages for
// them.
func macFiles(t *testing.T) []string {
	t.Helper()
	dir := root(t)
	var all []string
	for _, file := range files(t, dir) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(path.Dir(file), "test") || !strings.HasPrefix(file, "internal/") && !strings.HasPrefix(file, "cmd/") {
			continue
		}
		if on(t, "darwin", "arm64", file) || on(t, "darwin", "amd64", file) {
			all = append(all, file)
		}
	}
	return all
}

// on reports whether a file is part of the program on a system.
func on(t *testing.T, system, architecture, file string) bool {
	t.Helper()
	there := build.Context{GOOS: system, GOARCH: architecture, Compiler: "gc", ReleaseTags: build.Default.ReleaseTags}
	matches, err := there.MatchFile(filepath.Join(root(t), filepath.FromSlash(path.Dir(file))), path.Base(file))
	if err != nil {
		t.Fatal(err)
	}
	return matches
}

// Files that only a Mac has are named with what they do there; files for whatever is
// not Linux are named with the functions in them that answer that they cannot.
func TestMacNamesItsFiles(t *testing.T) {
	want := map[string][]string{}
	var own []string
	for _, file := range macFiles(t) {
		switch {
		case on(t, "linux", "arm64", file) || on(t, "linux", "amd64", file):
		case strings.Contains(path.Base(file), "_darwin"):
			own = append(own, path.Base(file))
			fallthrough
		default:
			if refusing := refusing(t, file); len(refusing) > 0 {
				want[file] = refusing
			}
		}
	}
	var named []string
	for _, row := range macPage(t, "") {
		for _, word := range words(row[0]) {
			named = append(named, path.Base(word))
		}
	}
	slices.Sort(own)
	slices.Sort(named)
	if diff := cmp.Diff(own, named); diff != "" {
		t.Errorf("the table of a Mac's own files is not what there is (-files +table); it is in test/machines/mac.md:\n%s", diff)
	}
	got := map[string][]string{}
	for _, row := range macPage(t, "Files") {
		got[words(row[0])[0]] = slices.Sorted(slices.Values(words(row[1])))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of what is unsupported is not what there is (-code +table); it is in test/machines/mac.md:\n%s", diff)
	}
}

// refusals are the names by which code says that this system cannot do something.
var refusals = []string{"Unsupported", "ErrUnsupported", "NoSnapshots", "ErrUnreachable", "noManager"}

// refusing lists the functions of a file that answer so, themselves or by a variable
// of their package's, or that print it.
func refusing(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), filepath.FromSlash(file)), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	siblings, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(path.Dir(file)), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	telling := map[string]bool{}
	for _, name := range refusals {
		telling[name] = true
	}
	for _, sibling := range siblings { // variables such as errLinux
		if strings.HasSuffix(sibling, "_test.go") || !on(t, "darwin", "arm64", path.Join(path.Dir(file), filepath.Base(sibling))) {
			continue
		}
		beside, err := parser.ParseFile(token.NewFileSet(), sibling, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range beside.Decls {
			general, ok := declared.(*ast.GenDecl)
			if !ok || general.Tok != token.VAR {
				continue
			}
			for _, spec := range general.Specs {
				value := spec.(*ast.ValueSpec)
				if len(value.Names) == 1 && strings.HasPrefix(value.Names[0].Name, "err") && names(value, telling) {
					telling[value.Names[0].Name] = true
				}
			}
		}
	}
	found := map[string]bool{}
	for _, declared := range parsed.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if ok && function.Body != nil && (names(function.Body, telling) || prints(function.Body, "needs Linux")) {
			found[function.Name.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// names reports whether code uses one of these names.
func names(code ast.Node, wanted map[string]bool) bool {
	found := false
	ast.Inspect(code, func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		found = found || ok && wanted[name.Name]
		return !found
	})
	return found
}

func prints(code ast.Node, text string) bool {
	found := false
	ast.Inspect(code, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		found = found || ok && literal.Kind == token.STRING && strings.Contains(literal.Value, text)
		return !found
	})
	return found
}

// CI vets what it cannot run: all of it for one kind of Mac, and for the other the
// packages that have code of its own.
func TestMacIsVetted(t *testing.T) {
	vetted := []string{"GOARCH=arm64 $(GO) vet ./cmd/... ./internal/..."}
	for _, file := range macFiles(t) {
		one := "GOARCH=amd64 $(GO) vet ./" + path.Dir(file)
		if !on(t, "darwin", "arm64", file) && !slices.Contains(vetted, one) {
			vetted = append(vetted, one)
		}
	}
	makefile := read(t, "Makefile")
	for _, one := range vetted {
		if !strings.Contains(makefile, "\tGOOS=darwin "+one+"\n") {
			t.Errorf("the Makefile does not run GOOS=darwin %s", one)
		}
	}
}
