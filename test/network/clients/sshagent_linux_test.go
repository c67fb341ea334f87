package clients_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// realAgent runs ssh-agent with the key in file.
func realAgent(t *testing.T, file string) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "socket")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	out, err := cmd.StdoutPipe() // says where it listens, when it does
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	add := exec.Command("ssh-add", "-q", file)
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if said, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return socket
}

// git over SSH works inside with the human's agent, whose keys never enter: here, and
// where nothing of this machine is mounted.
func TestSSHAgent(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]string{"here": "namespace", "elsewhere": "child"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trySSHAgent(t, name, driver)
		})
	}
}

func trySSHAgent(t *testing.T, name, driver string) {
	world.Need(t, "git", "ssh", "sshd", "ssh-agent", "ssh-add", "ssh-keygen")
	h := built.New(t)
	listed, asked := outside.Host("listed-"+name+".outside.example"), outside.Host("asked-"+name+".outside.example")
	dir := t.TempDir()
	var private, public string
	for i, host := range []*world.Host{listed, asked} {
		// The server's script writes a private key for others.
		script := sshServer(t, host)
		key := between(script, "<<'EOF'\n", "EOF\n")
		known := between(script, "echo '", "'")
		if i == 0 {
			private = filepath.Join(dir, "key")
			h.Put(private, key)
			if err := os.Chmod(private, 0o600); err != nil {
				t.Fatal(err)
			}
			public = outside.Do(t, nil, "ssh-keygen", "-y", "-f", private)
		}
		appendTo(t, filepath.Join(h.Home, ".ssh", "known_hosts"), known+"\n")
		if i == 1 {
			second := filepath.Join(dir, "second")
			h.Put(second, key)
			if err := os.Chmod(second, 0o600); err != nil {
				t.Fatal(err)
			}
			private = second
		}
	}
	first := filepath.Join(dir, "key")
	socket := realAgent(t, first)
	add := exec.Command("ssh-add", "-q", private)
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if said, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	h = h.With("SSH_AUTH_SOCK=" + socket)
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "[ssh-agent]\nenabled = true\nhosts = [\""+listed.Name+"\"]\n[network]\nallow = [\""+listed.Name+":22\", \""+asked.Name+":22\"]\n")
	h.Must("create", "box", "--driver", driver)

	// A login to a listed host needs no question.
	url := func(host *world.Host) string { return "ssh://outside@" + host.Name + bareRepository(t) }
	if got := h.InsideShell("box", "git ls-remote "+url(listed)+" main"); got.Code != 0 || !strings.Contains(got.Stdout, "refs/heads/main") {
		t.Fatalf("git over SSH to a listed host: %d %s%s\n%s", got.Code, got.Stdout, got.Stderr, h.Must("events", "--json"))
	}
	if got := h.InsideShell("box", "ssh-add -l; ssh-add -D"); strings.Count(got.Stdout, "ED25519") != 2 || got.Code == 0 {
		t.Errorf("the keys inside: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}

	// Any other one waits for the human, who sees which host it really is.
	fetch := "git ls-remote " + url(asked) + " main"
	for _, allow := range []bool{false, true} {
		done := make(chan program.Result)
		go func() { done <- h.InsideShell("box", fetch) }()
		var result program.Result
		answered := 0
		for waiting := true; waiting; {
			select {
			case result = <-done:
				waiting = false
			case <-time.After(50 * time.Millisecond): // nothing tells a test that a question stands
				for _, one := range signatures(t, h) {
					if !strings.Contains(one.Purpose, `log in as "outside" to `+asked.Name) {
						t.Errorf("the question is %q", one.Purpose)
					}
					if status := h.Must("status", "box"); answered == 0 && !strings.Contains(status, one.Purpose+": litterbox approve box "+strconv.Itoa(one.ID)) {
						t.Errorf("the status does not show what waits:\n%s", status)
					}
					answer := []string{"approve", "box", strconv.Itoa(one.ID)}
					if !allow {
						answer = append(answer, "--refuse")
					}
					h.Must(answer...)
					answered++
				}
			}
		}
		if worked := result.Code == 0; worked != allow || answered == 0 {
			t.Errorf("answered %d times with %t: %d %s%s", answered, allow, result.Code, result.Stdout, result.Stderr)
		}
	}

	// The same on the terminal on which the command runs.
	u := onTerminal(t, h, "exec", "--ask", "box", "--", "sh", "-c", fetch)
	for answered, open := 0, true; open; { // each key that ssh tries is a question
		var shown []byte
		select {
		case shown, open = <-u.shown:
			u.screen.Write(shown)
		case <-time.After(userPatience):
			t.Fatalf("it never ended, and showed:\n%s", u.screen.String())
		}
		if asked := strings.Count(u.screen.String(), "Return refuses: "); asked > answered {
			answered = asked
			u.types("o\n")
		}
	}
	if shown, code := u.leaves(); code != 0 || !strings.Contains(shown, "refs/heads/main") || !strings.Contains(shown, `wants to log in as "outside" to `+asked.Name+" with your key") {
		t.Errorf("approved on the terminal: %d %s", code, shown)
	}

	// A signed commit, with only the public half of the key inside.
	done := make(chan program.Result)
	go func() {
		done <- h.InsideShell("box", "echo '"+strings.TrimSpace(public)+"' > $HOME/key.pub; git -c gpg.format=ssh -c user.signingKey=$HOME/key.pub -c user.name=x -c user.email=x@example.com commit -q -S --allow-empty -m signed && git cat-file commit HEAD")
	}()
	for waiting := true; waiting; {
		select {
		case got := <-done:
			if waiting = false; !strings.Contains(got.Stdout, "BEGIN SSH SIGNATURE") {
				t.Errorf("a signed commit: %d %s%s", got.Code, got.Stdout, got.Stderr)
			}
		case <-time.After(50 * time.Millisecond):
			for _, one := range signatures(t, h) {
				if one.Purpose != "sign a commit or a tag of git" {
					t.Errorf("the question is %q", one.Purpose)
				}
				h.Must("approve", "box", strconv.Itoa(one.ID))
			}
		}
	}
	events := h.Must("events", "--json")
	for _, want := range []string{"the host is listed in ssh-agent.hosts", "you approved it", "you refused it"} {
		if !strings.Contains(events, want) {
			t.Errorf("the events do not say %q:\n%s", want, events)
		}
	}
	// Nothing of the agent itself is inside.
	if got := h.InsideShell("box", "ls -la "+filepath.Dir(socket)); got.Code == 0 {
		t.Errorf("the agent's directory is inside: %s", got.Stdout)
	}
	if _, err := net.Dial("unix", socket); err != nil {
		t.Errorf("the agent is gone: %v", err)
	}
}

type signature struct {
	ID      int
	Purpose string
}

func signatures(t *testing.T, h *program.Host) []signature {
	t.Helper()
	var all []signature
	if err := json.Unmarshal([]byte(h.Must("approve", "box", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func between(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	found, _, _ := strings.Cut(rest, end)
	return found
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	write(t, path, string(before)+text)
}
