package uses

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// host is the sandbox as OpenSSH's clients name it.
const host = "used.litterbox"

// opened is a sandbox whose doors are open.
type opened struct {
	*program.Host
	config string
}

// doors opens every door of a sandbox with the clients that people have.
func doors(t *testing.T, h *program.Host) {
	program.Need(t, "ssh", "scp", "sftp", "rsync")
	h.Must("ssh-config", "--install")
	for _, door := range []struct {
		name string
		open func(*testing.T, opened)
	}{
		{"ssh", commands}, {"scp and sftp", transfers}, {"rsync", mirrored}, {"sync", synced}, {"watch-back", watched},
		{"forwarding", forwarded}, {"code", coded}, {"an editor", edited},
	} {
		t.Run(door.name, func(t *testing.T) {
			mine := *h
			mine.TB = t
			door.open(t, opened{&mine, filepath.Join(h.State, "litterbox", "ssh", "config")})
		})
	}
}

// client runs one of OpenSSH's clients.
func (o opened) client(name string, args ...string) program.Result {
	o.Helper()
	return o.Command(o.Dir, name, append([]string{"-F", o.config, "-o", "ControlPath=none"}, args...)...)
}

// works fails where a client did.
func (o opened) works(got program.Result) program.Result {
	o.Helper()
	if got.Code != 0 {
		o.Fatalf("exit %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
	return got
}

// until waits for what is sure to come.
func (o opened) until(what string, holds func() bool) {
	o.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			o.Fatalf("%s did not come", what)
		}
	}
}

// committed reports whether a file of the branch has a content.
func (o opened) committed(file, content string) bool {
	o.Helper()
	return o.Command(o.Repo, "git", "show", "used:"+file).Stdout == content
}

// holds compares a file of this machine.
func (o opened) holds(file, content string) {
	o.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != content {
		o.Errorf("%s has %d bytes, want %d: %v", file, len(got), len(content), err)
	}
}

func commands(t *testing.T, o opened) {
	got := o.client("ssh", host, "echo by ssh; echo new >by-ssh; exit 7")
	if got.Code != 7 || got.Stdout != "by ssh\n" || !o.committed("by-ssh", "new\n") {
		t.Errorf("%+v", got)
	}
	piped := o.works(o.Shell("printf 'a\\nb\\n' | ssh -F " + o.config + " -o ControlPath=none " + host + " wc -l"))
	if strings.TrimSpace(piped.Stdout) != "2" {
		t.Errorf("standard input: %+v", piped)
	}
	if got := o.client("ssh", "-R", "9:localhost:9", "-o", "ExitOnForwardFailure=yes", host, "true"); got.Code == 0 || !strings.Contains(got.Stderr, "litterbox allow used") {
		t.Errorf("-R: %+v", got)
	}
}

func transfers(t *testing.T, o opened) {
	large := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	o.Put(filepath.Join(o.Dir, "sent"), large)
	o.works(o.client("scp", "-q", filepath.Join(o.Dir, "sent"), host+":by-scp"))
	if !o.committed("by-scp", large) {
		t.Error("what scp brought is not committed")
	}
	o.works(o.client("scp", "-q", host+":by-scp", filepath.Join(o.Dir, "by-scp")))
	o.holds(filepath.Join(o.Dir, "by-scp"), large)
	o.Put(filepath.Join(o.Dir, "batch"), "mkdir by-sftp\nput sent by-sftp/put\nrename by-sftp/put by-sftp/renamed\nget by-sftp/renamed got\n")
	o.works(o.client("sftp", "-q", "-b", filepath.Join(o.Dir, "batch"), host))
	o.holds(filepath.Join(o.Dir, "got"), large)
	if !o.committed("by-sftp/renamed", large) {
		t.Error("what sftp brought is not committed")
	}
}

func mirrored(t *testing.T, o opened) {
	if o.client("ssh", host, "command -v rsync").Code != 0 {
		t.Skip("inside there is no rsync")
	}
	from, back := filepath.Join(o.Dir, "rsync-from"), filepath.Join(o.Dir, "rsync-back")
	o.Put(filepath.Join(from, "sub/a file"), "content\n")
	remote := "ssh -F " + o.config + " -o ControlPath=none"
	o.works(o.Command(o.Dir, "rsync", "-a", "-e", remote, from+"/", host+":by-rsync/"))
	if !o.committed("by-rsync/sub/a file", "content\n") {
		t.Error("what rsync brought is not committed")
	}
	o.works(o.Command(o.Dir, "rsync", "-a", "-e", remote, host+":by-rsync/", back+"/"))
	if got := o.works(o.Command(o.Dir, "rsync", "-an", "--itemize-changes", "--checksum", "-e", remote, from+"/", host+":by-rsync/")).Stdout; got != "" {
		t.Errorf("the copy differs:\n%s", got)
	}
	o.holds(filepath.Join(back, "sub/a file"), "content\n")
}

func synced(t *testing.T, o opened) {
	o.Put(filepath.Join(o.Repo, "by-sync/file"), "mine\n")
	dry := o.Must("sync", "used", "by-sync", "--dry-run")
	if did := o.Must("sync", "used", "by-sync"); !strings.HasPrefix(did, dry) || !o.committed("by-sync/file", "mine\n") {
		t.Errorf("a dry run says %q, a real one %q", dry, did)
	}
	inside(t, o.Host, "used", "echo theirs >by-sync/file; echo new >by-sync/other", "")
	o.Must("sync-back", "used", "by-sync", "--yes")
	o.holds(filepath.Join(o.Repo, "by-sync/file"), "theirs\n")
	o.holds(filepath.Join(o.Repo, "by-sync/other"), "new\n")
}

// watched copies out what a command has written, before the command ends.
func watched(t *testing.T, o opened) {
	watch := exec.Command(o.Program("litterbox"), "watch-back", "used", "watched", "--at-once", "--delete", "-i", "1h")
	watch.Dir, watch.Env = o.Repo, o.Env
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(o.Repo, "watched")
	there := func() bool { _, err := os.Lstat(out); return err == nil }
	writer := exec.Command(o.Program("litterbox"), "exec", "used", "--", "sh", "-c", "echo early >watched; until test -e /tmp/end; do sleep 0.1; done")
	writer.Dir, writer.Env = o.Repo, o.Env
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	o.until("a file that a running command has written", there)
	o.holds(out, "early\n")
	o.works(o.Inside("used", "touch", "/tmp/end"))
	if err := writer.Wait(); err != nil {
		t.Error(err)
	}
	inside(t, o.Host, "used", "rm watched", "")
	o.until("its deletion", func() bool { return !there() })
	if err := watch.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("watch-back ends with %v", err)
	}
}

func forwarded(t *testing.T, o opened) {
	o.Must("service", "used", "start", "web")
	port := strings.TrimSpace(o.works(o.Inside("used", "sh", "-c", "echo $PORT_WEB")).Stdout)
	dir, err := os.MkdirTemp("", "fw") // a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	local := filepath.Join(dir, "s")
	forwarding := exec.Command("ssh", "-F", o.config, "-o", "ControlPath=none", "-N", "-L", local+":localhost:"+port, host)
	forwarding.Env = o.Env
	if err := forwarding.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = forwarding.Process.Kill(); _ = forwarding.Wait() }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", local)
	}}}
	o.until("a page of a server inside", func() bool {
		response, err := client.Get("http://inside/")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		page, _ := io.ReadAll(response.Body)
		return string(page) == "served\n"
	})
}

// coded has an editor in place that does what it is told: it opens the host.
func coded(t *testing.T, o opened) {
	programs := filepath.Join(o.Dir, "editors")
	o.Put(filepath.Join(programs, "code"), "#!/bin/sh\nssh -F "+o.config+" -o ControlPath=none "+host+" pwd >"+programs+"/opened && echo \"$@\" >"+programs+"/args\n")
	if err := os.Chmod(filepath.Join(programs, "code"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.Before(programs).Must("code", "used")
	args, err := os.ReadFile(filepath.Join(programs, "args"))
	if err != nil || !strings.Contains(string(args), host) {
		t.Errorf("the editor got %q: %v", args, err)
	}
	o.holds(filepath.Join(programs, "opened"), o.Repo+"\n")
}

// server does what the server of an editor does, as far as a sandbox sees it.
const server = `mkdir -p ~/.vscode-server/bin/1 && cat > ~/.vscode-server/bin/1/server <<'END'
while sleep 0.1; do
	if test -e /tmp/save; then
		mv /tmp/save saved
	fi
done
END
setsid sh ~/.vscode-server/bin/1/server </dev/null >/dev/null 2>&1 &
`

// edited is a session of an editor: it is listed, and what it saves is committed
// when it ends.
func edited(t *testing.T, o opened) {
	o.works(o.client("ssh", host, server))
	client := exec.Command("ssh", "-F", o.config, "-o", "ControlPath=none", host, "cat")
	client.Env = o.Env
	input, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	sessions := func() (found []string) {
		var status struct {
			Cycles []struct{ Kind, State, Command string }
		}
		if err := json.Unmarshal([]byte(o.Must("status", "used", "--json")), &status); err != nil {
			t.Fatal(err)
		}
		for _, cycle := range status.Cycles {
			if cycle.Kind == "editor" && cycle.State == "executing" {
				found = append(found, cycle.Command)
			}
		}
		return found
	}
	o.until("a session", func() bool { return strings.Join(sessions(), "") == "Visual Studio Code" })
	o.works(o.Inside("used", "sh", "-c", "echo kept > /tmp/saving && mv /tmp/saving /tmp/save"))
	o.until("the file that it saves", func() bool {
		return o.Inside("used", "test", "-e", "saved").Code == 0
	})
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait() // its code is the command's
	o.until("its end", func() bool { return len(sessions()) == 0 })
	o.until("its commit", func() bool { return o.committed("saved", "kept\n") })
}
