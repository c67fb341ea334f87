package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notUsed are exported methods of the engine that no frontend uses: the
// composition root calls them in processes of their own, or between frontends.
var notUsed = []string{"Background", "DriveAgent", "DoorFiles", "FindHost"}

// TestPolicyOfUseCases holds package use to its promise: each use case is in
// one group, so that a user of groups can reach every one of them.
func TestPolicyOfUseCases(t *testing.T) {
	methods, err := filepath.Glob(filepath.Join(root(t), "internal/engine/*.go"))
	if err != nil || len(methods) == 0 {
		t.Fatalf("no source: %v", err)
	}
	groups, err := filepath.Glob(filepath.Join(root(t), "internal/engine/use/*.go"))
	if err != nil || len(groups) == 0 {
		t.Fatalf("no groups: %v", err)
	}
	parse := func(path string) *ast.File {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	grouped := map[string][]string{} // groups by use case
	for _, file := range groups {
		for group, names := range groupsOf(parse(file)) {
			for _, name := range names {
				grouped[name] = append(grouped[name], group)
			}
		}
	}
	for _, file := range methods {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, name := range useCasesOf(parse(file)) {
			in := grouped[name]
			switch {
			case slices.Contains(notUsed, name):
				if len(in) > 0 {
					t.Errorf("%s is in use.%s: it is no longer an exception", name, in[0])
				}
			case len(in) == 0:
				t.Errorf("%s (%s) is in no group: add a line to one in internal/engine/use", name, filepath.Base(file))
			case len(in) > 1:
				t.Errorf("%s is in use.%s and in use.%s", name, in[0], in[1])
			}
		}
	}
}

// useCasesOf are the exported methods of Engine in a file.
func useCasesOf(file *ast.File) (names []string) {
	for _, declared := range file.Decls {
		f, ok := declared.(*ast.FuncDecl)
		if !ok || f.Recv == nil || !f.Name.IsExported() {
			continue
		}
		if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok {
			if of, ok := star.X.(*ast.Ident); ok && of.Name == "Engine" {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// groupsOf are the methods of each interface in a file.
func groupsOf(file *ast.File) map[string][]string {
	groups := map[string][]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if group, ok := spec.Type.(*ast.InterfaceType); ok {
			for _, method := range group.Methods.List {
				for _, name := range method.Names {
					groups[spec.Name.Name] = append(groups[spec.Name.Name], name.Name)
				}
			}
		}
		return false
	})
	return groups
}

// The readers of this test see what they look for.
func TestPolicyOfUseCasesSees(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
type Work interface { Create(); List(dir string) error; Inner }
type other struct{}
func (e *Engine) Create() {}
func (e *Engine) hidden() {}
func (p *place) Else() {}
func Free() {}
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := useCasesOf(file); !slices.Equal(got, []string{"Create"}) {
		t.Errorf("use cases: %q", got)
	}
	if got := groupsOf(file)["Work"]; !slices.Equal(got, []string{"Create", "List"}) {
		t.Errorf("group: %q", got)
	}
}
