package door_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// server does what the server of an editor does, as far as a sandbox sees it: it
// outlives the command that starts it, and writes files of the project.
const server = `mkdir -p ~/.vscode-server/bin/1 && cat > ~/.vscode-server/bin/1/server <<'END'
while sleep 0.1; do
	if test -e /tmp/save; then
		mv /tmp/save saved
	fi
done
END
setsid sh ~/.vscode-server/bin/1/server </dev/null >/dev/null 2>&1 &
`

// sessions are the editors' sessions of a sandbox that go on.
func (d *doors) sessions(name string) []string {
	d.Helper()
	var status struct {
		Cycles []struct{ Kind, State, Command string }
	}
	if err := json.Unmarshal([]byte(d.Must("status", name, "--json")), &status); err != nil {
		d.Fatal(err)
	}
	var found []string
	for _, cycle := range status.Cycles {
		if cycle.Kind == "editor" && cycle.State == "executing" {
			found = append(found, cycle.Command)
		}
	}
	return found
}

// TestEditors works as an editor does: its server runs on after the command
// that started it has ended, and it keeps one connection.
func TestEditors(t *testing.T) {
	d := open(t)
	d.Must("create", "fix")
	const host = "fix.litterbox"
	d.works(d.client("ssh", host, server))
	connect := func() (leave func()) {
		client := exec.Command("ssh", "-F", d.config, "-o", "ControlPath=none", host, "cat")
		client.Env = d.Env
		input, err := client.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Start(); err != nil {
			t.Fatal(err)
		}
		left := false
		leave = func() {
			if !left {
				left = true
				_ = input.Close()
				_ = client.Wait() // the sandbox may have ended it
			}
		}
		t.Cleanup(leave)
		return leave
	}
	save := func(content string) {
		d.works(d.Inside("fix", "sh", "-c", "echo "+content+" > /tmp/saving && mv /tmp/saving /tmp/save"))
		await(t, content+" in a commit", func() bool {
			return d.Command(d.Repo, "git", "show", "fix:saved").Stdout == content+"\n"
		})
	}

	leave := connect()
	await(t, "a session", func() bool { return strings.Join(d.sessions("fix"), "") == "Visual Studio Code" })
	save("first")
	save("second")
	if kinds := strings.Join(d.kinds("fix"), " "); kinds != "exec checkpoint checkpoint" {
		t.Errorf("what an editor saved is in the steps %s", kinds)
	}
	for _, what := range []string{"delete", "merge"} {
		if got := d.Litterbox(what, "fix"); got.Code == 0 || !strings.Contains(got.Stderr, "an editor (Visual Studio Code)") {
			t.Errorf("%s below an editor: %+v", what, got)
		}
	}
	if shown := d.Must("status", "fix"); !strings.Contains(shown, "Visual Studio Code (executing") {
		t.Errorf("status shows no session:\n%s", shown)
	}
	for _, look := range [][]string{{"list"}, {"top", "--once"}} {
		if shown := d.Must(look...); !strings.Contains(shown, " SESSIONS") || !strings.Contains(shown, " editor,exec") {
			t.Errorf("%s shows no session:\n%s", look[0], shown)
		}
	}
	leave()
	await(t, "its end", func() bool { return len(d.sessions("fix")) == 0 })
	if audit := d.Must("audit", "--json"); !strings.Contains(audit, `"action": "editor"`) {
		t.Errorf("the audit log has no session of an editor:\n%s", audit)
	}

	// It comes back to the server that it has left, and ends with the sandbox.
	connect()
	await(t, "a session again", func() bool { return len(d.sessions("fix")) == 1 })
	save("third")
	d.Must("stop", "fix")
	await(t, "its end with the sandbox", func() bool { return len(d.sessions("fix")) == 0 })
	if state := d.Must("status", "fix"); !strings.Contains(state, "stopped") {
		t.Errorf("a client that waits has started the sandbox:\n%s", state)
	}
}
