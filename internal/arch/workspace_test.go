package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEngineAsksForFiles finds the directories of a sandbox's files by their
// names in the engine: it asks package workspace for their content, because
// they may not be on this machine.
func TestEngineAsksForFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), "internal/engine/*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source: %v", err)
	}
	seen := false // that paths below the state directory are found at all
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			chosen, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || chosen.Sel.Name != "path" && chosen.Sel.Name != "Join" {
				return true
			}
			seen = true
			for _, argument := range call.Args {
				if literal, ok := argument.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					switch name, _ := strconv.Unquote(literal.Value); name {
					case "upper", "home", "copied":
						t.Errorf("%s opens %q of a sandbox: ask its workspace", filepath.Base(file), name)
					}
				}
			}
			return true
		})
	}
	if !seen {
		t.Fatal("this test sees nothing")
	}
}
