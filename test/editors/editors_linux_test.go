// Package editors_test works in a sandbox with a real editor that runs inside it,
// code-server, through a real browser.
package editors_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	if os.Getenv("LITTERBOX_TEST_EDITORS") == "" {
		os.Exit(m.Run()) // nothing needs the program
	}
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// patience bounds the wait for what is sure to come, even on a loaded machine.
const patience = 10 * time.Minute

const tasks = `{"version": "2.0.0", "tasks": [{
	"label": "build", "type": "shell", "command": "tr a-z A-Z < README > built; tty >> built",
	"group": {"kind": "build", "isDefault": true}, "problemMatcher": []
}]}
`

// TestBrowser changes a file in the browser, saves it, runs a task in the
// editor's terminal, and finds both in the sandbox's steps.
func TestBrowser(t *testing.T) {
	editors := os.Getenv("LITTERBOX_TEST_EDITORS")
	if editors == "" {
		t.Skip("LITTERBOX_TEST_EDITORS names no editors; see make test-editors")
	}
	program.Need(t, "node", "chromium")
	drive, err := filepath.Abs("drive.js")
	if err != nil {
		t.Fatal(err)
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	h := built.New(t)
	h.Put(filepath.Join(h.Home, ".config", "litterbox", "config.toml"), "[mounts]\nread-only = ["+strconv.Quote(editors)+"]\n")
	h.Put(filepath.Join(h.Repo, ".vscode", "tasks.json"), tasks)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), `
[container]
ports = ["editor"]
[container.services.editor]
command = ["sh", "-c", "exec node `+editors+`/node_modules/code-server/out/node/entry.js --auth none --bind-addr 127.0.0.1:$PORT_EDITOR --disable-workspace-trust --disable-telemetry --disable-update-check ."]
ready = { port = "editor", timeout = "10m" }
`)
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "an editor")
	h.Must("create", "box")
	h.Must("service", "box", "start")

	said, end := filepath.Join(h.Dir, "said"), filepath.Join(h.Dir, "end")
	code := exec.Command(h.Program("litterbox"), "code", "box", "--editor", "browser")
	code.Dir = h.Repo
	code.Env = append(h.Env, "BROWSER=node "+drive, "EDITORS="+editors, "CHROMIUM="+chromium, "FOLDER="+h.Repo, "SAID="+said, "END="+end)
	if err := code.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = code.Process.Kill()
			_ = code.Wait() // it was killed
		}
		if t.Failed() {
			text, _ := os.ReadFile(said)
			t.Logf("%s\n%s", text, h.Litterbox("service", "box", "logs", "editor", "--tail", "-1").Stdout)
		}
		h.Put(end, "")
		await(t, "the end of the browser", func() bool {
			text, err := os.ReadFile(said)
			return err != nil || strings.HasSuffix(string(text), "closed\n")
		})
	}()
	committed := func(path, content string) func() bool {
		return func() bool {
			return strings.Contains(h.Command(h.Repo, "git", "show", "box:"+path).Stdout, content)
		}
	}
	await(t, "what was saved", committed("README", "changed in the browser: hello"))
	await(t, "what the task made", committed("built", "CHANGED IN THE BROWSER: HELLO\n/dev/pts/"))
	if shown := h.Must("status", "box"); !strings.Contains(shown, "code-server (executing") {
		t.Errorf("status shows no session:\n%s", shown)
	}
	var steps []struct{ Kind, Message string }
	if err := json.Unmarshal([]byte(h.Must("log", "box", "--json")), &steps); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, step := range steps {
		found = found || step.Kind == "checkpoint" && strings.Contains(step.Message, "README")
	}
	if !found {
		t.Errorf("no step says that README was changed: %+v", steps)
	}
	if err := code.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended = true
	if err := code.Wait(); err != nil {
		t.Errorf("the end of the session: %v", err)
	}
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
