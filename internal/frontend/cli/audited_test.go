package cli_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

// commandAudit says of each command under which action its entry of the audit
// log stands, or in parentheses why it leaves none. The entries themselves are
// the engine's; its own list is in internal/engine/audited_test.go, and
// test/script/testdata/audited.txtar types the commands.
var commandAudit = map[string]string{
	"litterbox": "(shows help)",

	"agent":           "(shows help)",
	"agent attach":    "(shows a run, which has its entry)",
	"agent install":   "agent-install",
	"agent logs":      "(reads)",
	"agent resume":    "agent-run, and agent while it works",
	"agent run":       "create, agent-run, and agent while it works",
	"agent list":      "(reads)",
	"agent uninstall": "agent-uninstall",
	"allow":           "allow",
	"apply":           "apply",
	"approve":         "approve, with a number",
	"cp":              "cp",
	"create":          "create",
	"delete":          "delete",
	"demo":            "create, exec, … as their commands do",
	"deny":            "deny",
	"doctor":          "doctor --fix, with --fix",
	"exec":            "exec",
	"compare":         "exec, with --test",
	"fork":            "fork",
	"limits":          "limits, with changes",
	"mcp":             "the name of each tool that is called",
	"merge":           "merge",
	"milestone":       "milestone",
	"network":         "start, with --follow, when its keeper has to be started",
	"open":            "start, when it was stopped",
	"pause":           "pause, for each sandbox",
	"prune":           "prune, and delete for each sandbox",
	"read":            "start, when it was stopped",
	"reattach":        "reattach",
	"redteam":         "(works in a state directory of its own, which it removes)",
	"restore":         "restore",
	"resume":          "resume, for each sandbox",
	"rewind":          "rewind",
	"snapshot":        "snapshot",
	"snapshot delete": "snapshot delete",
	"snapshots":       "(reads)",
	"run":             "create and exec",
	"secrets":         "secrets set, secrets remove: the source, without the value",
	"service":         "service start, service stop, service restart",
	"shell":           "shell",
	"start":           "start",
	"stop":            "stop",
	"trash":           "(shows help)",
	"trash empty":     "trash empty",
	"trash list":      "(reads)",
	"trash restore":   "trash restore, and create where only commits were kept",
	"trust":           "trust",
	"write":           "write",
	"audit":           "(reads)",
	"audit verify":    "(reads)",
	"completion":      "(prints)",
	"cost":            "(reads)",
	"cycles":          "(reads)",
	"df":              "(reads)",
	"diff":            "(reads)",
	"events":          "(reads)",
	"list":            "(reads)",
	"log":             "(reads)",
	"metrics":         "(reads)",
	"network presets": "(reads)",
	"network test":    "(reads)",
	"path":            "(writes plain copies of what is committed into a directory of ours)",
	"ports":           "(reads)",
	"status":          "(reads)",
	"top":             "(reads)",
	"version":         "(prints)",
	"watch":           "(reads)",
}

// TestEveryCommandIsAccountedFor keeps a new command from being forgotten.
func TestEveryCommandIsAccountedFor(t *testing.T) {
	t.Parallel()
	for _, command := range cli.AllCommands() {
		if commandAudit[command] == "" {
			t.Errorf("what does %q leave in the audit log? Say so in the list above", command)
		}
	}
}
