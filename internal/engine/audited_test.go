package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// audited are the use cases that change something. Each opens an entry of the
// audit log, or works under the one that its caller has opened.
//
// To add a use case: when it changes anything that a human could ask about later, a call
// of recordIn in it (of record, where it finds no sandbox) and a line here; otherwise a
// line in silent that says why no one will ask.
var audited = map[string]bool{
	"AddMachine":   true,
	"Approve":      true,
	"ChangePolicy": true,
	"Compare":      true, // with a test
	"Copy":         true,

	"DeleteEnvironments": true,
	"EnvironmentShell":   true,

	"Build":           true,
	"Create":          true,
	"Delete":          true,
	"DeleteGolden":    true,
	"DeleteSnapshots": true,
	"TakeBranch":      true,
	"Exec":            true,
	"Fix":             true,
	"Fork":            true,
	"Init":            true, // once it writes
	"ImportGolden":    true,
	"Install":         true,
	"InstallAgents":   true,
	"InstallDoor":     true,
	"StartAgent":      true,
	"DriveAgent":      true,
	"Limits":          true, // with changes only
	"Merge":           true,
	"Milestone":       true,
	"Pause":           true,
	"Prune":           true,
	"Reattach":        true,
	"RecreateVM":      true,
	"RemoveMachine":   true,
	"StartVM":         true,
	"StopVM":          true, // one that runs
	"VMShell":         true,
	"RemoveSecret":    true,
	"Rename":          true,
	"Restore":         true,
	"EmptyTrash":      true,
	"RestoreSnapshot": true,
	"Resume":          true,
	"Rewind":          true,
	"ServeFiles":      true,
	"Service":         true, // except for its status
	"SetSecret":       true,
	"Spawn":           true, // create for each worker, or fork
	"Start":           true,
	"Stop":            true,
	"Sync":            true,
	"SyncBack":        true, // unless it is a dry run
	"TakeSnapshot":    true,
	"Trust":           true,
	"Update":          true,
	"UninstallAgents": true,
	"UninstallDoor":   true,
	"Write":           true,

	// They look, and start a sandbox that is stopped: that has its entry.
	"AwaitServices":     true, // likewise, for the log of one that fails
	"AccompanyEditors":  true, // each session has an entry
	"DialInside":        true,
	"Diff":              true, // where only the place can say what changed
	"DiffTool":          true, // likewise
	"Find":              true,
	"FindProgram":       true,
	"FollowNetwork":     true,
	"FollowServiceLogs": true,
	"OpenPort":          true,
	"Read":              true,
	"Search":            true,
	"ServiceLogs":       true, // attaches when the keeper has died
	"Show":              true,
}

// silent are the others, with the reason why they leave no entry.
var silent = map[string]string{
	"Agents":         "reads",
	"CheckAgent":     "reads",
	"InsideAgents":   "reads",
	"NewCommandLog":  "writes down what a command prints, which has its entry",
	"Unmerged":       "reads",
	"Audit":          "reads",
	"Browse":         "reads",
	"BrowseCopy":     "reads",
	"BrowseFile":     "reads",
	"GitCommand":     "reads",
	"Configuration":  "reads",
	"Cost":           "reads",
	"Cycles":         "reads",
	"DiskUsage":      "reads",
	"Doctor":         "reads",
	"DoorBlock":      "reads",
	"DoorFiles":      "reads",
	"DoorHosts":      "reads",
	"DriverNames":    "reads",
	"DriverReport":   "reads",
	"Events":         "reads",
	"Environments":   "reads",
	"Exists":         "reads",
	"FindHost":       "reads",
	"ExportGolden":   "reads",
	"GoldenLog":      "reads",
	"GoldenOf":       "reads",
	"Goldens":        "reads",
	"ExplainNetwork": "reads",
	"List":           "reads",
	"ListHere":       "reads",
	"ListMachines":   "reads",
	"Log":            "reads",
	"Network":        "reads",
	"Ports":          "reads",
	"Presets":        "reads",
	"Refs":           "reads",
	"Refused":        "reads",
	"Samples":        "reads",
	"Secrets":        "reads",
	"TestMachine":    "reads",
	"Placing":        "reads",
	"TestSecrets":    "reads",
	"AgentLogins":    "reads",
	"AttachAgent":    "shows and types into a terminal that is there; the run has its entry",
	"AwaitAgent":     "reads",
	"AwaitChange":    "reads",
	"FollowAgent":    "reads",
	"Glance":         "reads",
	"LastRun":        "reads",
	"PackagePresets": "reads",
	"RunOutput":      "reads",
	"Runs":           "reads",
	"StopAgent":      "ends a run, which has its entry and writes there how it ended",
	"Signatures":     "reads",
	"Snapshots":      "reads",
	"Branches":       "reads",
	"Status":         "reads",
	"SuggestNetwork": "reads",
	"Tree":           "reads",
	"Within":         "reads",
	"Trash":          "reads",
	"VerifyAudit":    "reads",
	"SingleVMs":      "reads",
	"VMLogs":         "reads",
	"VMStatus":       "reads",
	"Watch":          "reads",
	"Path":           "writes plain copies of what is committed into a directory of ours",
	"Background":     "joins layers of a cache; no sandbox changes",
	"Begin":          "is how an entry is opened",
	"Hold":           "a session's claim; the tool call that makes it has its entry",
	"Renew":          "a session's sign of life",
	"Release":        "a session's end",
}

// TestEveryUseCaseIsAccountedFor keeps a new use case from being forgotten.
func TestEveryUseCaseIsAccountedFor(t *testing.T) {
	t.Parallel()
	kind := reflect.TypeFor[*engine.Engine]()
	for method := range kind.Methods() {
		if audited[method.Name] == (silent[method.Name] != "") {
			t.Errorf("is %s audited? Say so in one of the two lists above", method.Name)
		}
	}
}

// TestAuditedUseCasesRecord follows the calls in the package's source from each
// use case. One that is called audited and never reaches record is a lie; so is
// one that is called silent and does.
func TestAuditedUseCasesRecord(t *testing.T) {
	t.Parallel()
	calls := callsInPackage(t)
	reaches := func(from string) bool {
		seen := map[string]bool{}
		for open := []string{from}; len(open) > 0; {
			name := open[0]
			open = open[1:]
			if name == "record" || name == "recordIn" || name == "Begin" {
				return true
			}
			if !seen[name] {
				seen[name] = true
				open = append(open, calls[name]...)
			}
		}
		return false
	}
	if !reaches("Exec") || reaches("Exists") {
		t.Fatal("this test sees nothing")
	}
	for name := range audited {
		if calls[name] != nil && !reaches(name) {
			t.Errorf("%s leaves no entry in the audit log: no call of record is on its way", name)
		}
	}
	for name := range silent {
		if name != "Begin" && reaches(name) {
			t.Errorf("%s leaves an entry in the audit log, and is called silent", name)
		}
	}
}

// callsInPackage lists by function, with any receiver, the functions of the
// package that it calls or hands on: e is always the engine there and p a place.
func callsInPackage(t *testing.T) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string][]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			name := function.Name.Name
			ast.Inspect(function.Body, func(node ast.Node) bool {
				if call, ok := node.(*ast.CallExpr); ok {
					node = call.Fun
					calls[name] = append(calls[name], selected(node, "p")...)
				}
				calls[name] = append(calls[name], selected(node, "e")...)
				return true
			})
		}
	}
	if len(calls) < 50 {
		t.Fatalf("only %d functions were read", len(calls))
	}
	return calls
}

// selected is what node selects of the variable owner.
func selected(node ast.Node, owner string) []string {
	if selector, ok := node.(*ast.SelectorExpr); ok {
		if of, ok := selector.X.(*ast.Ident); ok && of.Name == owner {
			return []string{selector.Sel.Name}
		}
	}
	return nil
}
