package sshagent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/sshagent"
)

// bench is a real agent with two keys, a proxy in front of it, and OpenSSH on
// both sides of logins.
type bench struct {
	*testing.T
	dir    string
	socket string // the proxy's

	mu     sync.Mutex
	asked  []sshagent.Request
	answer error
	offers func(comment string) bool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	for _, name := range []string{"ssh-agent", "ssh-add", "ssh-keygen", "ssh"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no " + name)
		}
	}
	dir, err := os.MkdirTemp("", "agent") // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &bench{T: t, dir: dir, socket: filepath.Join(dir, "proxy"), offers: func(string) bool { return true }}
	real := filepath.Join(dir, "real")
	cmd := exec.Command("ssh-agent", "-D", "-a", real)
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
	for _, name := range []string{"work", "private", "host", "other"} {
		b.run(nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", filepath.Join(dir, name))
	}
	b.run([]string{"SSH_AUTH_SOCK=" + real}, "ssh-add", "-q", filepath.Join(dir, "work"), filepath.Join(dir, "private"))
	proxy := &sshagent.Proxy{
		Dial: func(context.Context) (net.Conn, error) { return net.Dial("unix", real) },
		Offers: func(_, comment string) bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.offers(comment)
		},
		Decide: func(_ context.Context, r sshagent.Request) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.asked = append(b.asked, r)
			return b.answer
		},
	}
	listener, err := net.Listen("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = proxy.Serve(t.Context(), conn) }()
		}
	}()
	return b
}

func (b *bench) try(env []string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), append([]string{"SSH_AUTH_SOCK=" + b.socket, "HOME=" + b.dir}, env...)...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (b *bench) run(env []string, argv ...string) string {
	b.Helper()
	out, err := b.try(env, argv...)
	if err != nil {
		b.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return out
}

// requests returns the questions so far, and resets them.
func (b *bench) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, r := range b.asked {
		text := fmt.Sprintf("%s %s%s %s", r.Kind, r.User, r.Namespace, r.Comment)
		if r.HostKey != nil {
			text += " " + ssh.FingerprintSHA256(r.HostKey)
		}
		all = append(all, text)
	}
	b.asked = nil
	return all
}

func (b *bench) fingerprint(name string) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name+".pub"))
	if err != nil {
		b.Fatal(err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		b.Fatal(err)
	}
	return ssh.FingerprintSHA256(key)
}

// login runs ssh to an OpenSSH server started for this one connection.
func (b *bench) login(args ...string) (string, error) {
	b.Helper()
	sshd := "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		b.Skip("there is no sshd")
	}
	if _, err := os.Stat("/run/sshd"); os.Geteuid() == 0 && err != nil {
		b.Skip("sshd has no directory to separate privileges in")
	}
	me, err := user.Current()
	if err != nil {
		b.Fatal(err)
	}
	config := filepath.Join(b.dir, "sshd.conf")
	content := strings.Join([]string{"HostKey " + filepath.Join(b.dir, "host"), "AuthorizedKeysFile " + filepath.Join(b.dir, "work.pub"),
		"PidFile none", "UsePAM no", "StrictModes no", "PasswordAuthentication no", "PermitRootLogin yes", ""}, "\n")
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	argv := append([]string{"ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "ProxyCommand=" + sshd + " -i -f " + config}, args...)
	return b.try(nil, append(argv, me.Username+"@code.example.com", "echo in")...)
}

func TestKeysAreChosenAndNoneIsChanged(t *testing.T) {
	b := newBench(t)
	b.mu.Lock()
	b.offers = func(comment string) bool { return comment == "work" }
	b.mu.Unlock()
	if got := b.run(nil, "ssh-add", "-l"); !strings.Contains(got, " work ") || strings.Contains(got, "private") {
		t.Errorf("the keys are:\n%s", got)
	}
	// A key that is not shown signs nothing, though its public part is known.
	if err := os.WriteFile(filepath.Join(b.dir, "text"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(b.dir, "private"), filepath.Join(b.dir, "away")); err != nil {
		t.Fatal(err)
	}
	if out, err := b.try(nil, "ssh-keygen", "-Y", "sign", "-n", "git", "-f", "private.pub", "text"); err == nil {
		t.Errorf("a key that is not offered has signed: %s", out)
	}
	for _, argv := range [][]string{
		{"ssh-add", "-q", filepath.Join(b.dir, "other")}, {"ssh-add", "-q", "-d", filepath.Join(b.dir, "work")}, {"ssh-add", "-q", "-D"},
	} {
		if out, err := b.try(nil, argv...); err == nil {
			t.Errorf("%q was done: %s", argv, out)
		}
	}
	if diff := cmp.Diff([]string(nil), b.requests()); diff != "" {
		t.Errorf("questions were asked:\n%s", diff)
	}
	if got := b.run(nil, "ssh-add", "-l"); strings.Count(got, "\n") != 1 {
		t.Errorf("afterwards the keys are:\n%s", got)
	}
}

func TestSignaturesOfFiles(t *testing.T) {
	b := newBench(t)
	if err := os.WriteFile(filepath.Join(b.dir, "text"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Without the private part beside it, the agent must sign.
	if err := os.Rename(filepath.Join(b.dir, "work"), filepath.Join(b.dir, "away")); err != nil {
		t.Fatal(err)
	}
	b.run(nil, "ssh-keygen", "-Y", "sign", "-n", "git", "-f", "work.pub", "text")
	if diff := cmp.Diff([]string{"file git work"}, b.requests()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.run(nil, "sh", "-c", `ssh-keygen -Y check-novalidate -n git -s text.sig < text`)
	b.mu.Lock()
	b.answer = errors.New("no")
	b.mu.Unlock()
	if out, err := b.try(nil, "ssh-keygen", "-Y", "sign", "-n", "git", "-f", "work.pub", "away"); err == nil {
		t.Errorf("a signature that was refused was made: %s", out)
	}
}

func TestLoginsNameTheRealHost(t *testing.T) {
	b := newBench(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.login("-o", "PreferredAuthentications=publickey", "-o", "IdentitiesOnly=yes", "-i", "work.pub")
	if err != nil || !strings.Contains(out, "in\n") {
		t.Fatalf("%v: %s", err, out)
	}
	// The host's key counts, not the typed name.
	if diff := cmp.Diff([]string{"login " + me.Username + " work " + b.fingerprint("host")}, b.requests()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.mu.Lock()
	b.answer = errors.New("no")
	b.mu.Unlock()
	if out, err := b.login("-i", "work.pub", "-o", "IdentitiesOnly=yes"); err == nil {
		t.Errorf("a login that was refused went on: %s", out)
	}
}

// say speaks to the proxy like a modified program.
func (b *bench) say(message []byte) byte {
	b.Helper()
	conn, err := net.Dial("unix", b.socket)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	length := []byte{byte(len(message) >> 24), byte(len(message) >> 16), byte(len(message) >> 8), byte(len(message))}
	if _, err := conn.Write(append(length, message...)); err != nil {
		b.Fatal(err)
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err != nil {
		b.Fatal(err)
	}
	return head[4]
}

func TestNothingElseIsSigned(t *testing.T) {
	b := newBench(t)
	public, err := os.ReadFile(filepath.Join(b.dir, "work.pub"))
	if err != nil {
		t.Fatal(err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(public)
	if err != nil {
		t.Fatal(err)
	}
	session := bytes.Repeat([]byte("s"), 32)
	login := func(method string, rest []byte) []byte {
		return ssh.Marshal(struct {
			Session               []byte
			Message               byte
			User, Service, Method string
			Signed                bool
			Algorithm             string
			Key                   []byte
			Rest                  []byte `ssh:"rest"`
		}{session, 50, "me", "ssh-connection", method, true, key.Type(), key.Marshal(), rest})
	}
	sign := func(data []byte) byte {
		return b.say(ssh.Marshal(struct {
			Key   []byte `sshtype:"13"`
			Data  []byte
			Flags uint32
		}{key.Marshal(), data, 0}))
	}
	const signed, failure = 14, 5
	// The control: a login of an older client, which proves no host.
	if got := sign(login("publickey", nil)); got != signed {
		t.Errorf("a login is answered with %d", got)
	}
	if diff := cmp.Diff([]string{"login me work"}, b.requests()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, data := range map[string][]byte{
		"nothing":                 nil,
		"anything":                []byte("anything"),
		"half a login":            login("publickey", nil)[:50],
		"a login and more":        login("publickey", []byte("more")),
		"a host without a proof":  login("publickey-hostbound-v00@openssh.com", ssh.Marshal(struct{ Key []byte }{key.Marshal()})),
		"a file without a name":   append([]byte("SSHSIG"), ssh.Marshal(struct{ N, R, A, H string }{"", "", "sha512", "x"})...),
		"a name that hides":       append([]byte("SSHSIG"), ssh.Marshal(struct{ N, R, A, H string }{"git\x1b[2K", "", "sha512", "x"})...),
		"a magic and nothing":     []byte("SSHSIG"),
		"a login by another name": bytes.Replace(login("publickey", nil), []byte("ssh-connection"), []byte("ssh-connectioX"), 1),
	} {
		if got := sign(data); got != failure {
			t.Errorf("%s is answered with %d", name, got)
		}
	}
	if asked := b.requests(); len(asked) > 0 {
		t.Errorf("questions were asked: %q", asked)
	}
	// A session that no host has signed, and one that was passed on.
	bind := func(forwarding bool, signature []byte) byte {
		return b.say(ssh.Marshal(struct {
			Type       byte
			Name       string
			Host       []byte
			Session    []byte
			Signature  []byte
			Forwarding bool
		}{27, "session-bind@openssh.com", key.Marshal(), session, signature, forwarding}))
	}
	if got := bind(false, ssh.Marshal(ssh.Signature{Format: key.Type(), Blob: make([]byte, 64)})); got == 6 {
		t.Error("a session is bound to a host that has not signed it")
	}
}

func TestNamesOfHosts(t *testing.T) {
	b := newBench(t)
	data, err := os.ReadFile(filepath.Join(b.dir, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data))
	mine := fields[0] + " " + fields[1]
	known := "# comment\nnonsense\n\ncode.example.com,192.0.2.1 " + mine + "\n@revoked evil.example.com " + mine + "\n*.example.org " + mine + "\n[other.example.com]:2222 " + mine + " me\n|1|aaaa|bbbb " + mine
	if diff := cmp.Diff([]string{"code.example.com", "192.0.2.1", "[other.example.com]:2222"}, sshagent.HostNames([]byte(known), key)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzNothingUnknownIsSigned feeds what programs may send.
func FuzzNothingUnknownIsSigned(f *testing.F) {
	f.Add([]byte{11})
	f.Add([]byte{13, 0, 0, 0, 0})
	f.Add(ssh.Marshal(struct {
		Type byte
		Name string
		Rest []byte
	}{27, "session-bind@openssh.com", nil}))
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) == 0 || len(message) > 1<<16 {
			return
		}
		inside, outside := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = (&sshagent.Proxy{
				Dial:   func(context.Context) (net.Conn, error) { return nil, errors.New("there is none") },
				Offers: func(string, string) bool { return true },
				Decide: func(context.Context, sshagent.Request) error {
					t.Error("without an agent there is a question")
					return nil
				},
			}).Serve(t.Context(), outside)
		}()
		go func() {
			length := []byte{byte(len(message) >> 24), byte(len(message) >> 16), byte(len(message) >> 8), byte(len(message))}
			_, _ = inside.Write(append(length, message...))
		}()
		_, _ = inside.Read(make([]byte, 5))
		_ = inside.Close()
		<-done
	})
}
