package cli

import (
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

func TestEditorCommand(t *testing.T) {
	t.Parallel()
	host := engine.DoorHost{Host: "fix.litterbox", Name: "fix", Project: "/src/web site"}
	for editor, want := range map[string]string{
		"code":      "code|--remote|ssh-remote+fix.litterbox|/src/web site",
		"cursor":    "cursor|--remote|ssh-remote+fix.litterbox|/src/web site",
		"zed":       "zed|ssh://fix.litterbox/src/web%20site",
		"jetbrains": "jetbrains-gateway|jetbrains-gateway://connect#host=fix.litterbox&port=22&projectPath=%2Fsrc%2Fweb+site&type=ssh&user=litterbox",
		"ed":        "",
	} {
		if got, _ := editorCommand(editor, host); strings.Join(got, "|") != want {
			t.Errorf("%s: %q", editor, got)
		}
	}
}
