package mcp

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// toolPrefix begins the name of each tool.
const toolPrefix = "sandbox-"

// foreignTools are tools that models know from elsewhere, and their counterparts
// here.
func foreignTools() map[string]string {
	const (
		shell = "sandbox-exec"
		patch = "sandbox-exec with: git apply --recount <<'EOF' … EOF; or sandbox-edit with edits"
		edit  = "sandbox-edit, or sandbox-write for a whole file"
	)
	return map[string]string{
		"bash": shell, "Bash": shell, "shell": shell, "exec": shell, "run": shell, "run_command": shell, "run_shell_command": shell,
		"execute_command": shell, "terminal": shell, "exec_command": shell,
		"apply_patch": patch, "patch": patch,
		"edit": edit, "Edit": edit, "MultiEdit": edit, "edit_file": edit, "replace": edit, "str_replace": edit, "str_replace_editor": edit,
		"str_replace_based_edit_tool": edit,
		"write":                       "sandbox-write", "Write": "sandbox-write", "write_file": "sandbox-write", "create_file": "sandbox-write",
		"read": "sandbox-read", "Read": "sandbox-read", "read_file": "sandbox-read", "view": "sandbox-read", "cat": "sandbox-read",
		"ls": "sandbox-files", "LS": "sandbox-files", "glob": "sandbox-files", "Glob": "sandbox-files", "list_directory": "sandbox-files", "list_dir": "sandbox-files",
		"grep": "sandbox-search", "Grep": "sandbox-search", "search": "sandbox-search", "search_file_content": "sandbox-search",
		"commit": "sandbox-milestone; each change is committed by itself", "git_commit": "sandbox-milestone; each change is committed by itself",
		"sandbox-delete": "no tool: the human deletes and merges sandboxes", "sandbox-merge": "no tool: the human merges, after sandbox-milestone",
	}
}

// pointing serves a call of a tool by another spelling of its name, and answers one
// of a foreign tool with its counterpart here, so that the model can go on. Other
// unknown names get the protocol's error. names are the tools.
func pointing(names []string) sdk.Middleware {
	foreign := foreignTools()
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
			if params, ok := request.GetParams().(*sdk.CallToolParamsRaw); ok && method == "tools/call" {
				if own := respelled(params.Name); slices.Contains(names, own) {
					params.Name = own
				} else if way, known := foreign[params.Name]; known {
					return failure(params.Name, fault.New(fault.NotFound, "there is no tool %q here", params.Name).WithHint("use %s", way)), nil
				}
			}
			return next(ctx, method, request)
		}
	}
}

// respelled is a tool's name without clients' changes to it: they put the server's
// name before it, and turn dashes into underscores.
func respelled(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	return name[max(0, strings.LastIndex(name, toolPrefix)):]
}
