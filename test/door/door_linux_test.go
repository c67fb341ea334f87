// Package door_test opens sandboxes of the true program with the clients that
// people have: OpenSSH's, rsync and git.
package door_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// patience bounds the wait for what is sure to come, even on a loaded machine.
const patience = 2 * time.Minute

// doors is a host on which sandboxes are hosts of ssh.
type doors struct {
	*program.Host
	config string
}

func open(t *testing.T) *doors {
	t.Parallel()
	program.Need(t, "ssh", "scp", "sftp", "rsync", "git")
	h := built.New(t)
	h.Must("ssh-config", "--install")
	return &doors{h, filepath.Join(h.State, "litterbox", "ssh", "config")}
}

// client runs one of OpenSSH's clients with the block. (They find ~ in the
// password file, so that a test names the file.)
func (d *doors) client(name string, args ...string) program.Result {
	d.Helper()
	return d.Command(d.Dir, name, append([]string{"-F", d.config, "-o", "ControlPath=none"}, args...)...)
}

func (d *doors) works(got program.Result) string {
	d.Helper()
	if got.Code != 0 {
		d.Fatalf("exit %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
	return got.Stdout
}

// kinds returns the steps of a sandbox, the oldest first.
func (d *doors) kinds(name string) []string {
	d.Helper()
	var steps []struct{ Kind string }
	if err := json.Unmarshal([]byte(d.Must("log", name, "--json")), &steps); err != nil {
		d.Fatal(err)
	}
	var kinds []string
	for _, step := range steps {
		kinds = append(kinds, step.Kind)
	}
	return kinds
}

func TestCommands(t *testing.T) {
	d := open(t)
	d.Must("create", "fix")
	const host = "fix.litterbox"
	got := d.client("ssh", host, "echo out; echo err >&2; pwd; exit 7")
	if got.Code != 7 || got.Stdout != "out\n"+d.Repo+"\n" || !strings.Contains(got.Stderr, "err\n") {
		t.Errorf("exec: %+v", got)
	}
	if got := d.works(d.Command(d.Dir, "sh", "-c", "printf 'a\\nb\\n' | ssh -F "+d.config+" "+host+" wc -l")); strings.TrimSpace(got) != "2" {
		t.Errorf("standard input: %q", got)
	}
	with := &doors{d.With("LC_PAPER=A4", "COLORTERM=truecolor", "API_KEY=secret"), d.config}
	inside := with.works(with.client("ssh", "-o", "SendEnv=API_KEY", host, "env"))
	if !strings.Contains(inside, "LC_PAPER=A4") || !strings.Contains(inside, "COLORTERM=truecolor") || strings.Contains(inside, "secret") {
		t.Errorf("the environment inside:\n%s", inside)
	}
	if got := d.client("ssh", host, "kill -9 $$"); got.Code != 255 { // as with sshd: no exit status
		t.Errorf("a command that a signal ended: %+v", got)
	}
	// The same steps as exec makes, and no step for a look by a program that copies.
	before := len(d.kinds("fix"))
	d.works(d.client("ssh", host, "echo new > made"))
	d.works(d.Command(d.Dir, "env", "GIT_SSH_COMMAND=ssh -F "+d.config, "git", "clone", "-q", host+":.", filepath.Join(d.Dir, "clone")))
	if kinds := d.kinds("fix"); len(kinds) != before+1 {
		t.Errorf("steps: %v, before there were %d", kinds, before)
	}
	if got := d.Must("diff", "fix", "--name-only"); got != "made" {
		t.Errorf("what was written is not committed: %q", got)
	}
	if got := d.works(d.Command(filepath.Join(d.Dir, "clone"), "git", "log", "--format=%s")); got != "first\n" {
		t.Errorf("the clone has %q", got)
	}
	audit := d.Must("audit", "--json")
	for _, said := range []string{`"via": "ssh"`, "SSH-2.0-OpenSSH", "git-upload-pack"} {
		if !strings.Contains(audit, said) {
			t.Errorf("the audit log does not say %s:\n%s", said, audit)
		}
	}
	// It works while the sandbox ends and begins, over one connection.
	control := controlPath(t)
	over := []string{"-F", d.config, "-o", "ControlPath=" + control}
	master := exec.Command("ssh", append(over, "-M", "-N", host)...)
	master.Env = d.Env
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = master.Process.Kill(); _ = master.Wait() }()
	await(t, "a master", func() bool {
		return d.Command(d.Dir, "ssh", append(over, "-O", "check", host)...).Code == 0
	})
	var channels sync.WaitGroup
	for i := range 8 { // MaxSessions of sshd is 10
		channels.Go(func() {
			got := d.Command(d.Dir, "ssh", append(over, host, fmt.Sprintf("exit %d", i))...)
			if got.Code != i {
				t.Errorf("channel %d: %+v", i, got)
			}
		})
	}
	channels.Wait()
	d.Must("stop", "fix")
	if got := d.works(d.Command(d.Dir, "ssh", append(over, host, "cat made")...)); got != "new\n" {
		t.Errorf("after a restart: %q", got)
	}
}

// controlPath returns the path of a socket that is not there yet.
func controlPath(t *testing.T) string {
	dir, err := os.MkdirTemp("", "cm") // a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestForwarding reaches a server inside, and nothing else by the same means.
func TestForwarding(t *testing.T) {
	d := open(t)
	program.Need(t, "python3")
	d.Must("create", "fix")
	const host = "fix.litterbox"
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	reached := make(chan struct{}, 16)
	go func() {
		for {
			conn, err := outside.Accept()
			if err != nil {
				return
			}
			reached <- struct{}{}
			_, _ = io.WriteString(conn, "the host's own\n")
			conn.Close()
		}
	}()
	port := fmt.Sprint(outside.Addr().(*net.TCPAddr).Port)
	// The control: the server of the host answers on the host.
	conn, err := net.Dial("tcp", outside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if said, _ := io.ReadAll(conn); string(said) != "the host's own\n" {
		t.Fatalf("the control: %q", said)
	}
	conn.Close()
	<-reached
	for target, why := range map[string]string{
		"localhost:" + port:             "cannot connect to port",
		"127.0.0.1:" + port:             "cannot connect to port",
		"[::1]:" + port:                 "cannot connect to port",
		"0.0.0.0:" + port:               "administratively prohibited",
		"[::ffff:127.0.0.1]:" + port:    "cannot connect to port",
		hostAddress(t) + ":" + port:     "administratively prohibited",
		"localhost.localdomain:" + port: "administratively prohibited",
	} {
		got := d.client("ssh", "-W", target, host)
		if got.Code == 0 || got.Stdout != "" || !strings.Contains(got.Stderr, why) {
			t.Errorf("-W %s: %+v", target, got)
		}
	}
	if got := d.client("ssh", "-R", "9:localhost:"+port, "-o", "ExitOnForwardFailure=yes", host, "true"); got.Code == 0 || !strings.Contains(got.Stderr, "litterbox allow fix") {
		t.Errorf("-R: %+v", got)
	}
	if got := d.client("ssh", "-A", "-X", host, "echo [$SSH_AUTH_SOCK$DISPLAY]"); strings.TrimSpace(got.Stdout) != "[]" {
		t.Errorf("-A and -X: %+v", got)
	}
	select {
	case <-reached:
		t.Error("the sandbox's client reached a server of the host")
	default:
	}

	d.works(d.client("ssh", host, `echo inside > index.html; python3 -c '
import http.server, os
s = http.server.ThreadingHTTPServer(("127.0.0.1", 8123), http.server.SimpleHTTPRequestHandler)
if os.fork() == 0:
    os.setsid()
    s.serve_forever()
' >/dev/null 2>&1`))
	// A socket of its own: a free port could be another's by the time ssh listens.
	local := controlPath(t)
	forwarding := exec.Command("ssh", "-F", d.config, "-o", "ControlPath=none", "-N", "-L", local+":localhost:8123", host)
	forwarding.Env = d.Env
	if err := forwarding.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = forwarding.Process.Kill(); _ = forwarding.Wait() }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", local)
	}}}
	await(t, "a page of a server inside", func() bool {
		response, err := client.Get("http://inside/")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		page, _ := io.ReadAll(response.Body)
		return string(page) == "inside\n"
	})
}

// hostAddress is an address of this machine that is not loopback, or one of a
// documentation network where it has none.
func hostAddress(t *testing.T) string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && !network.IP.IsLoopback() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	return "192.0.2.1"
}

// TestAttacks asks for what no client gets.
func TestAttacks(t *testing.T) {
	d := open(t)
	d.Must("create", "fix")
	const host = "fix.litterbox"
	if got := d.client("ssh", "root@"+host, "id"); got.Code == 0 || !strings.Contains(got.Stderr, `cannot log in to sandbox "fix" as "root"`) {
		t.Errorf("another user: %+v", got)
	}
	if got := d.client("ssh", "nowhere.litterbox", "id"); got.Code == 0 || !strings.Contains(got.Stderr, "litterbox list --all") {
		t.Errorf("no such sandbox: %+v", got)
	}
	// A host that would end the quotes around it starts nothing.
	planted := filepath.Join(d.Dir, "planted")
	d.client("ssh", "x';touch "+planted+";'.litterbox", "id")
	d.client("ssh", "$(touch "+planted+").litterbox", "id")
	if _, err := os.Lstat(planted); err == nil {
		t.Error("a host's name was run as a command")
	}
	// Files of the host cannot be reached by any path, nor by a link planted
	// while a client looks away.
	secret := filepath.Join(d.Home, "secret")
	d.Put(secret, "only for the host\n")
	d.works(d.client("ssh", host, "ln -s "+secret+" link; mkdir way; rmdir way; ln -s "+d.Home+" way"))
	for _, path := range []string{secret, "../../home/secret", "link", "way/secret", "/proc/1/root" + secret, "/proc/self/root" + secret} {
		if got := d.client("scp", "-q", host+":"+path, "stolen"); got.Code == 0 {
			t.Errorf("scp of %s succeeded", path)
		}
	}
	for _, path := range []string{"link", "way/planted", "../../home/planted"} {
		d.client("scp", "-q", d.config, host+":"+path)
	}
	if got := d.works(d.Command(d.Dir, "sh", "-c", "cat home/secret; ls home")); got != "only for the host\nsecret\n" {
		t.Errorf("the host's home: %q", got)
	}
	// The control: the same client reads what is inside.
	d.works(d.client("scp", "-q", host+":README", "taken"))
	// A pipe holds up no session.
	d.works(d.client("ssh", host, "mkfifo pipe"))
	if got := d.client("scp", "-q", host+":pipe", "stolen"); got.Code == 0 {
		t.Error("a pipe was copied")
	}
	// Another host key is not believed.
	d.Put(filepath.Join(filepath.Dir(d.config), "known_hosts"), "litterbox ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGxNtWHHvGXMP8DHAdcQo4wkrHv6s5eVXFsW8vEVYnqv\n")
	if got := d.client("ssh", host, "id"); got.Code == 0 || !strings.Contains(got.Stderr, "REMOTE HOST IDENTIFICATION HAS CHANGED") {
		t.Errorf("another host key: %+v", got)
	}
	d.Must("ssh-config", "--install")
	d.works(d.client("ssh", host, "true"))
	// Private files are private.
	for path, mode := range map[string]os.FileMode{"host_key": 0o600, "known_hosts": 0o600, "config": 0o600, ".": 0o700} {
		if info, err := os.Stat(filepath.Join(filepath.Dir(d.config), path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

// TestNames tells sandboxes of several repositories apart.
func TestNames(t *testing.T) {
	d := open(t)
	d.Must("create", "fix")
	other := filepath.Join(d.Dir, "elsewhere", "web site")
	d.works(d.Command(d.Dir, "git", "clone", "-q", d.Repo, other))
	if got := d.Must("ssh-config", "fix"); got != "fix.litterbox" {
		t.Errorf("a name that is alone: %q", got)
	}
	d.Must("-C", other, "create", "fix")
	if got := d.Must("-C", other, "ssh-config", "fix"); got != "fix.web-site.litterbox" {
		t.Errorf("a name that two have: %q", got)
	}
	if got := d.client("ssh", "fix.litterbox", "pwd"); got.Code == 0 || !strings.Contains(got.Stderr, "fix.project.litterbox, or ssh fix.web-site.litterbox") {
		t.Errorf("an ambiguous name: %+v", got)
	}
	if got := d.works(d.client("ssh", "fix.web-site.litterbox", "pwd")); got != other+"\n" {
		t.Errorf("the other's: %q", got)
	}
	twin := filepath.Join(d.Dir, "third", "project")
	d.works(d.Command(d.Dir, "git", "clone", "-q", d.Repo, twin))
	d.Must("-C", twin, "create", "fix")
	host := d.Must("-C", twin, "ssh-config", "fix")
	if got := d.works(d.client("ssh", host, "pwd")); got != twin+"\n" {
		t.Errorf("%s: %q", host, got)
	}
}
