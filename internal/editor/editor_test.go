package editor_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/editor"
)

func TestServersAreRecognised(t *testing.T) {
	for command, want := range map[string]string{
		"/home/agent/.vscode-server/cli/servers/Stable-1a2b/server/node /home/agent/.vscode-server/cli/servers/Stable-1a2b/server/out/server-main.js --host=127.0.0.1": "vscode",
		"sh /home/agent/.vscode-server/bin/1a2b/bin/code-server --start-server":                                                                                        "vscode",
		"/home/agent/.vscode-server/code-1a2b command-shell --cli-data-dir /home/agent/.vscode-server/cli":                                                             "vscode",
		"/home/agent/.cursor-server/bin/1a2b/node /home/agent/.cursor-server/bin/1a2b/out/server-main.js":                                                              "cursor",
		"/home/agent/.zed_server/zed-remote-server-stable-0.200.0 run --log-file /x":                                                                                   "zed",
		"/home/agent/.cache/JetBrains/RemoteDev/dist/1a_goland/jbr/bin/java -cp x":                                                                                     "jetbrains",
		"/usr/bin/node /usr/lib/node_modules/code-server/out/node/entry --auth none":                                                                                   "code-server",
		"node /usr/local/bin/code-server":                             "code-server",
		"/opt/openvscode-server/node /opt/openvscode-server/out/x.js": "openvscode-server",
		"":                                     "",
		"code-server":                          "",
		"sh -c make":                           "",
		"[kworker]":                            "",
		"cat a b /home/agent/.vscode-server/x": "",
		"/usr/bin/code-servers":                "",
		"vi /src/vscode-server/main.go":        "",
	} {
		if got, ok := editor.Of(command); got.Name != want || ok != (want != "") {
			t.Errorf("%q is %q, want %q", command, got.Name, want)
		}
	}
}

func TestNamed(t *testing.T) {
	if got, ok := editor.Named("zed"); !ok || got.Title != "Zed" {
		t.Errorf("zed: %+v, %v", got, ok)
	}
	if _, ok := editor.Named("ed"); ok {
		t.Error("an unknown name has an editor")
	}
}
