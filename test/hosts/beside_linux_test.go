package hosts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// The suites of services and of kills run on sandboxes of a host that is this
// machine with another home, which has the servers that they start and the numbers
// of processes that they kill. OpenSSH's server for each connection is a process
// that ssh starts: what a command does on the host is killed with it, too.
func TestSuitesBeside(t *testing.T) {
	if os.Getenv("LITTERBOX_TEST_MACHINES") != "" {
		program.Suites(t, beside(t), "service", "crash")
		return
	}
	// A sample, without make test-machines.
	t.Setenv("LITTERBOX_TEST_RUN", "^TestExec$/^(client|outpost)$")
	program.Suites(t, beside(t), "crash")
}

// beside makes the host, which ssh knows as "beside".
func beside(t *testing.T) program.Elsewhere {
	t.Helper()
	program.Need(t, "ssh", "ssh-keygen", "sshd")
	paths := map[string]string{"ssh": "", "sshd": ""} // the server executes itself and wants its whole path
	for name := range paths {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		paths[name] = path
	}
	dir, err := os.MkdirTemp("", "far") // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, dir) })
	put := func(name, content string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	identity, public := keys(t)
	hostPrivate, hostPublic := keys(t)
	home := filepath.Dir(put("home/.hushlogin", "", 0o644))
	server := put("sshd_config", strings.Join([]string{
		"UsePAM no", "StrictModes no", "PasswordAuthentication no", "PidFile none", "PermitRootLogin yes",
		"HostKey " + hostPrivate, "AuthorizedKeysFile " + put("keys", public, 0o644), "SetEnv HOME=" + home + " XDG_STATE_HOME=" + home,
	}, "\n")+"\n", 0o644)
	serve := paths["sshd"] + " -i -f " + server
	if os.Getuid() == 0 { // then it wants an empty directory where the system has it
		serve = "unshare --mount sh " + put("serve", "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec "+serve+"\n", 0o644)
	}
	config := put("ssh_config", "Host beside\n\tProxyCommand "+serve+"\n\tUserKnownHostsFile "+put("known", "beside "+hostPublic, 0o644)+
		"\n\tStrictHostKeyChecking yes\n\tIdentityFile "+identity+"\n\tIdentityAgent none\n", 0o644)
	wrapper := put("bin/ssh", "#!/bin/sh\nexec "+paths["ssh"]+" -F "+config+" \"$@\"\n", 0o755)
	return program.Elsewhere{
		Name: "this machine, by ssh", Env: []string{"PATH=" + filepath.Dir(wrapper) + ":" + os.Getenv("PATH")}, Settings: "machine = \"beside\"\n",
		Machine: []string{"beside", "ssh://beside"}, Enter: "env",
	}
}
