package clients_test

import (
	"net/http/cgi"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
)

// sshServer runs OpenSSH on port 22 of a host and returns what a client also
// needs: a script that writes a key and makes ssh use it.
func sshServer(t *testing.T, h *world.Host) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"host", "user"} {
		outside.Do(t, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name))
	}
	write(t, filepath.Join(dir, "config"), strings.Join([]string{
		"HostKey " + filepath.Join(dir, "host"), "AuthorizedKeysFile " + filepath.Join(dir, "user.pub"), "PidFile none",
		"ListenAddress " + h.V4.String(), "ListenAddress " + h.V6.String(),
		"UsePAM no", "StrictModes no", "PasswordAuthentication no", "AcceptEnv GIT_PROTOCOL",
	}, "\n")+"\n")
	sshd, err := world.Find("sshd") // it executes itself and wants its whole path
	if err != nil {
		t.Fatal(err)
	}
	p := outside.Start(t, nil, sshd, "-D", "-e", "-f", filepath.Join(dir, "config"))
	outside.Await(t, h.V4.String()+":22", p)
	return "umask 077; cat > /tmp/key <<'EOF'\n" + read(t, filepath.Join(dir, "user")) + "EOF\n" +
		"echo '" + h.Name + " " + strings.TrimSpace(read(t, filepath.Join(dir, "host.pub"))) + "' > /tmp/known\n" +
		"export GIT_SSH_COMMAND='ssh -F none -i /tmp/key -o UserKnownHostsFile=/tmp/known -o BatchMode=yes -l outside'\n"
}

// bareRepository is one with a commit in it, for servers of git. It works in a
// directory of its own: that of the world outside belongs to every test.
func bareRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	bare := filepath.Join(dir, "project.git")
	outside.Do(t, nil, "sh", "-ec", `
git init --quiet --bare -b main "$0"; git -C "$0" config http.receivepack true
git init --quiet -b main "$1"; cd "$1"; echo content > file; git add file
git -c user.name=o -c user.email=o@example.com commit --quiet -m first; git push --quiet "$0" main`, bare, filepath.Join(dir, "work"))
	return bare
}

// cloneAndPush prints what it cloned, and what the server has after a push.
func cloneAndPush(url string) string {
	return "rm -rf /tmp/clone; git clone --quiet " + url + " /tmp/clone; cd /tmp/clone; cat file\n" +
		"git -c user.name=i -c user.email=i@example.com commit --quiet --allow-empty -m pushed; git push --quiet origin main; git ls-remote origin main | cut -f2"
}

func loginClients() []client {
	return []client{
		{
			Name: "ssh", Needs: []string{"ssh", "sshd"}, Want: "hello from outside",
			Serve: func(t *testing.T) ([]string, string) {
				h := outside.Host("shell.outside.example")
				return []string{h.Name + ":22"}, sshServer(t, h) + "$GIT_SSH_COMMAND " + h.Name + " echo hello from $(echo outside)"
			},
		},
		{
			Name: "git over ssh", Needs: []string{"git", "ssh", "sshd"}, Want: "content\nrefs/heads/main",
			Serve: func(t *testing.T) ([]string, string) {
				h := outside.Host("code.outside.example")
				return []string{h.Name + ":22"}, sshServer(t, h) + cloneAndPush("ssh://"+h.Name+bareRepository(t))
			},
		},
		{
			Name: "git over https", Needs: []string{"git"}, Want: "content\nrefs/heads/main",
			Serve: func(t *testing.T) ([]string, string) {
				h := outside.Host("forge.outside.example")
				bare := bareRepository(t)
				git, err := world.Find("git")
				if err != nil {
					t.Fatal(err)
				}
				webSite(t, h, &cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{
					"GIT_PROJECT_ROOT=" + filepath.Dir(bare), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=outside",
					"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}})
				return []string{h.Name + ":443"}, "export GIT_SSL_CAINFO=$PWD/ca.pem\n" + cloneAndPush("https://"+h.Name+"/project.git")
			},
		},
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
