// Package opensshsuite_test runs OpenSSH's own regression scripts against
// sandboxes. Where the scripts would start sshd, they start the program, which
// speaks the same protocol over standard input and output.
package opensshsuite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	if os.Getenv("LITTERBOX_TEST_OPENSSH") == "" {
		os.Exit(m.Run()) // nothing needs the program
	}
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// limit bounds a script. The longest take some minutes.
const limit = 20 * time.Minute

// source is the directory that test/opensshsuite/fetch has filled.
func source(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LITTERBOX_TEST_OPENSSH")
	if dir == "" {
		t.Skip("LITTERBOX_TEST_OPENSSH names no scripts of OpenSSH; see make test-openssh")
	}
	return filepath.Join(dir, "regress")
}

// TestEveryScriptIsJudged finds the scripts of a newer OpenSSH that no table has.
func TestEveryScriptIsJudged(t *testing.T) {
	made, err := os.ReadFile(filepath.Join(source(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(made), "LTESTS=")
	list, _, _ := strings.Cut(rest, "\n\n")
	names := strings.Fields(strings.ReplaceAll(list, "\\\n", " "))
	if len(names) < 50 {
		t.Fatalf("the Makefile lists the scripts %q", names)
	}
	for _, name := range names {
		_, runs := applies[name]
		_, not := without[name]
		if runs == not {
			t.Errorf("script %s: applies %v, with a reason why not %v", name, runs, not)
		}
	}
	for name := range applies {
		if !slices.Contains(names, name) {
			t.Errorf("there is no script %s", name)
		}
	}
	for name := range without {
		if !slices.Contains(names, name) {
			t.Errorf("there is no script %s", name)
		}
	}
}

// TestSuite runs each script that applies. It must succeed, but for the
// complaints that the table explains, and each of those must come.
func TestSuite(t *testing.T) {
	regress := source(t)
	program.Need(t, "ssh", "scp", "sftp")
	chosen := strings.Fields(os.Getenv("LITTERBOX_OPENSSH_SUITE"))
	for name, known := range applies {
		if len(chosen) > 0 && !slices.Contains(chosen, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, regress, name)
			var unknown []string
			seen := map[int]int{}
			for _, complaint := range got.complaints {
				at := slices.IndexFunc(known, func(k explained) bool { return k.complaint.MatchString(complaint) })
				if at < 0 {
					unknown = append(unknown, complaint)
				}
				seen[at]++
			}
			for at, k := range known {
				if seen[at] == 0 || k.times > 0 && seen[at] != k.times {
					t.Errorf("%s complains %d times: %s (%s)", name, seen[at], k.complaint, k.why)
				}
			}
			if len(unknown) > 0 || (len(known) == 0) != (got.code == 0) {
				t.Errorf("%s exited %d with complaints that nothing explains:\n%s\n\n%s", name, got.code, strings.Join(unknown, "\n"), got.said)
			}
		})
	}
}

// result is how a script ended.
type result struct {
	code       int
	complaints []string // what it did, a colon, and what was wrong
	said       string
}

// run runs one script against a sandbox of its own, which shares the script's
// directory of files: the scripts assume that client and server are one machine.
func run(t *testing.T, regress, name string) result {
	h := built.New(t)
	files, tools := filepath.Join(h.Dir, "files"), filepath.Join(h.Dir, "tools")
	h.Put(filepath.Join(files, "config.h"), "")
	h.Put(filepath.Join(h.Home, ".config", "litterbox", "config.toml"), fmt.Sprintf("[mounts]\nread-write = [%q]\n", files))
	h.Must("ssh-config", "--install")
	h.Must("create", "box")
	door := filepath.Join(h.State, "litterbox", "ssh")
	// The scripts make keys, which serve hosts and users. That of sandboxes is
	// one.
	hostKey := h.Command(h.Dir, "sh", "-ec", `cp "$1/host_key" "$2/ssh-ed25519"; chmod 600 "$2/ssh-ed25519"
ssh-keygen -y -f "$2/ssh-ed25519" > "$2/ssh-ed25519.pub"; touch "$2"/ssh-ed25519*`, "sh", door, files)
	if hostKey.Code != 0 {
		t.Fatalf("no host key: %+v", hostKey)
	}
	offered := h.Command(h.Dir, "ssh", "-F", filepath.Join(door, "config"), "-o", "ControlPath=none", "-vv", "box.litterbox", "true")
	if offered.Code != 0 {
		t.Fatalf("no sandbox: %+v", offered)
	}
	for tool, text := range standIns(h.Program("litterbox"), files, offered.Stderr) {
		path := filepath.Join(tools, tool)
		if tool == "mkdtemp" || tool == "netcat" {
			path = filepath.Join(files, tool)
		}
		h.Put(path, "#!/bin/sh\n"+text)
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(name string) string { return filepath.Join(tools, name) }
	with := h.With(
		"PATH="+tools+":"+os.Getenv("PATH"), "TEST_SHELL=sh", "BUILDDIR="+files, "TEST_SSH_UNSAFE_PERMISSIONS=1",
		"TEST_SSH_SSH="+tool("ssh"), "TEST_SSH_SSHD="+tool("sshd"), "TEST_SSH_SFTPSERVER="+tool("sftp-server"),
		"TEST_SSH_SSH_CONFOPTS=ProxyCommand "+tool("sshd")+" -i",
	)
	if name == "sftp" {
		// It asks for five bytes at a time, and the data is a copy of that program.
		h.Put(tool("ssh-agent"), strings.Repeat("a few bytes of data\n", 500))
		with.Env = append(with.Env, "TEST_SSH_SSHAGENT="+tool("ssh-agent"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	script := exec.CommandContext(ctx, "sh", filepath.Join(regress, "test-exec.sh"), files, filepath.Join(regress, name+".sh"))
	script.Dir, script.Env = files, with.Env
	script.WaitDelay = 10 * time.Second // processes that it leaves running must not hold up the test
	said, err := script.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", name, err, said)
	}
	failed, err := os.ReadFile(filepath.Join(files, "failed-regress.log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	got := result{code: script.ProcessState.ExitCode(), said: string(said)}
	doing := ""
	for line := range strings.Lines(string(failed)) {
		line = strings.TrimRight(line, "\n")
		if text, ok := strings.CutPrefix(line, "trace: "); ok {
			doing = text
		}
		if _, text, ok := strings.Cut(line, "FAIL: "); ok {
			got.complaints = append(got.complaints, doing+": "+text)
		}
		if _, text, ok := strings.Cut(line, "FATAL: "); ok {
			got.complaints = append(got.complaints, doing+": "+text)
		}
	}
	return got
}

// standIns returns the programs that scripts find in place of OpenSSH's own.
// offered has the algorithms that both ends know, as ssh -vv lists them.
func standIns(litterbox, files, offered string) map[string]string {
	algorithms := func(what string) string {
		_, server, _ := strings.Cut(offered, "peer server KEXINIT proposal")
		found := regexp.MustCompile(`debug2: ` + what + `: (\S+)`).FindStringSubmatch(server)
		if found == nil {
			return ""
		}
		all := slices.DeleteFunc(strings.Split(found[1], ","), func(name string) bool { return strings.HasPrefix(name, "kex-strict-") })
		return strings.Join(all, `\n`)
	}
	ciphers := algorithms("ciphers stoc")
	sealed := slices.DeleteFunc(strings.Split(ciphers, `\n`), func(name string) bool { return !strings.Contains(name, "gcm") && !strings.Contains(name, "poly1305") })
	return map[string]string{
		"whoami": "echo litterbox\n",
		// Algorithms that both ends know are tried.
		"ssh": `query=
for word; do
	case $query in
	-Q) case $word in
		key-plain) exec echo ssh-ed25519 ;;
		kex) both='` + algorithms("KEX algorithms") + `' ;;
		cipher) both='` + ciphers + `' ;;
		cipher-auth) both='` + strings.Join(sealed, `\n`) + `' ;;
		mac) both='` + algorithms("MACs stoc") + `' ;;
		*) both= ;;
		esac
		if test -n "$both"; then
			/usr/bin/ssh -Q "$word" >"$0.$$"
			printf "$both\\n" | grep -Fxf "$0.$$"
			rm "$0.$$"
			exit
		fi ;;
	esac
	query=$word
done
exec /usr/bin/ssh "$@"
`,
		// A check of the configuration succeeds. A server that listens is a process
		// with a pid file: the client's configuration leads past its port.
		"sshd": `for word; do
	case $word in
	-t) exit 0 ;;
	-T) exit 1 ;;
	-i) exec '` + litterbox + `' ssh-proxy box.litterbox 2>>'` + files + `/door.log' ;;
	esac
done
sh -c 'trap "rm -f pidfile; exit" TERM; while [ -e config.h ]; do sleep 1; done' </dev/null >/dev/null 2>&1 &
echo $! >'` + files + `/pidfile'
`,
		"sftp-server": "exec /usr/bin/ssh -q -F '" + files + "/ssh_proxy' somehost -s sftp\n",
		"mkdtemp":     "exec mktemp -d \"/tmp/$1\"\n",
		"netcat":      "exit 1\n",
	}
}
