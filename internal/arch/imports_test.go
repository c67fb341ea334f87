package arch_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/litterbox-sandbox/litterbox"

// Every file counts, whatever its build tags, and the go command is not asked:
// the test cache would not notice a changed answer.
func TestImports(t *testing.T) {
	rules, err := parsePolicy(policy, testPolicy)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := readTree(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree) < 10 {
		t.Fatalf("only %d packages were found: the search is wrong", len(tree))
	}
	for _, wrong := range rules.violations(tree) {
		t.Error(wrong)
	}
}

// root returns the directory of go.mod.
func root(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("cannot find go.mod above the test")
		}
		dir = parent
	}
}

// uses is what one package imports from ours, by importing file.
type uses struct {
	code, tests map[string][]string // file → names of packages
}

// readTree parses the imports of every package below dir.
func readTree(dir string) (map[string]uses, error) {
	tree := map[string]uses{}
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if at != dir && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
				return filepath.SkipDir // as the go command does
			}
			if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil && at != dir {
				return filepath.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		pkg := short(filepath.ToSlash(filepath.Dir(relative)))
		if _, known := tree[pkg]; !known {
			tree[pkg] = uses{map[string][]string{}, map[string][]string{}}
		}
		into := tree[pkg].code
		if strings.HasSuffix(name, "_test.go") {
			into = tree[pkg].tests
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if inside, ours := strings.CutPrefix(imported, module+"/"); ours {
				into[relative] = append(into[relative], short(inside))
			}
		}
		return nil
	})
	return tree, err
}

func short(dir string) string { return strings.TrimPrefix(dir, "internal/") }

// rules are the two policies, parsed.
type rules struct {
	may      map[string][]string // by package
	testsNot []string
	testsMay map[string][]string // by package
}

func parsePolicy(code, tests string) (rules, error) {
	may, err := parseBlock(code)
	if err != nil {
		return rules{}, err
	}
	testsMay, err := parseBlock(tests)
	if err != nil {
		return rules{}, err
	}
	parsed := rules{may, testsMay["not"], testsMay}
	delete(testsMay, "not")
	for pkg, imports := range may {
		for _, imported := range imports {
			if _, known := may[imported]; !known {
				return rules{}, fmt.Errorf("the policy lets %s import %s, which it does not know", pkg, imported)
			}
		}
	}
	return parsed, nil
}

func parseBlock(text string) (map[string][]string, error) {
	block := map[string][]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		pkg, imports, ok := strings.Cut(line, ":")
		if _, twice := block[pkg]; !ok || twice {
			return nil, fmt.Errorf("the policy has a line that is not a rule, or a second one: %q", line)
		}
		block[pkg] = strings.Fields(imports)
	}
	return block, nil
}

// violations compares the tree with the rules, sorted.
func (r rules) violations(tree map[string]uses) []string {
	var found []string
	for pkg, used := range tree {
		if _, known := r.may[pkg]; !known {
			found = append(found, fmt.Sprintf("package %s has no rule: give it a line in the policy", pkg))
			continue
		}
		for file, imports := range used.code {
			for _, imported := range imports {
				if !slices.Contains(r.may[pkg], imported) {
					found = append(found, fmt.Sprintf("%s: %s may not import %s", file, pkg, imported))
				}
			}
		}
		for file, imports := range used.tests {
			for _, imported := range imports {
				if !r.testMay(pkg, imported) {
					found = append(found, fmt.Sprintf("%s: tests of %s may not import %s", file, pkg, imported))
				}
			}
		}
	}
	for pkg := range r.may {
		if _, exists := tree[pkg]; !exists {
			found = append(found, fmt.Sprintf("the policy has a rule for %s, which does not exist", pkg))
		}
	}
	for pkg := range r.testsMay {
		if _, exists := tree[pkg]; !exists {
			found = append(found, fmt.Sprintf("the policy has a rule for the tests of %s, which does not exist", pkg))
		}
	}
	slices.Sort(found)
	return found
}

func (r rules) testMay(pkg, imported string) bool {
	return imported == pkg || slices.Contains(r.may[pkg], imported) || slices.Contains(r.testsMay[pkg], imported) ||
		!slices.Contains(r.testsNot, imported)
}

// The test above is worth what it can find.
func TestImportsFindsWhatIsWrong(t *testing.T) {
	const code = "fault:\nsandbox: fault # vocabulary\nengine: sandbox\nfrontend/cli: engine\ndriver/a: sandbox\ndriver/b: sandbox\n"
	const tests = "not: driver/a driver/b frontend/cli\ndriver/b: driver/a\n"
	in := func(file string, imports ...string) map[string][]string { return map[string][]string{file: imports} }
	clean := map[string]uses{
		"fault": {}, "sandbox": {code: in("s.go", "fault")}, "engine": {tests: in("e_test.go", "engine", "fault")},
		"frontend/cli": {tests: in("c_test.go", "frontend/cli")}, "driver/a": {}, "driver/b": {tests: in("b_test.go", "driver/a")},
	}
	parsed, err := parsePolicy(code, tests)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		pkg  string
		now  *uses
		want []string
	}{
		"nothing":       {pkg: "fault", now: &uses{}},
		"wrong import":  {"driver/a", &uses{code: in("a.go", "driver/b")}, []string{"a.go: driver/a may not import driver/b"}},
		"upwards":       {"fault", &uses{code: in("f.go", "engine")}, []string{"f.go: fault may not import engine"}},
		"wrong in test": {"engine", &uses{tests: in("e_test.go", "driver/a")}, []string{"e_test.go: tests of engine may not import driver/a"}},
		"no rule":       {"stray", &uses{}, []string{"package stray has no rule: give it a line in the policy"}},
		"no package":    {"sandbox", nil, []string{"the policy has a rule for sandbox, which does not exist"}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := maps.Clone(clean)
			if test.now == nil {
				delete(tree, test.pkg)
			} else {
				tree[test.pkg] = *test.now
			}
			if diff := cmp.Diff(test.want, parsed.violations(tree)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"a b", "a:\na:", "a: unknown"} {
		if _, err := parsePolicy(bad, ""); err == nil {
			t.Errorf("the policy %q is accepted", bad)
		}
	}
}

// Names that say nothing collect everything (STYLE: a package is one noun).
func TestPackageNames(t *testing.T) {
	tree, err := readTree(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range tree {
		switch path.Base(pkg) {
		case "util", "utils", "common", "helper", "helpers", "types", "manager", "core", "misc", "base":
			t.Errorf("package %s has a name that says nothing", pkg)
		}
	}
}
