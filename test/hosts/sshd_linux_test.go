package hosts_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// far is a host that ssh reaches. Run by root it is a root file system with
// busybox and OpenSSH's server in it and nothing else, with processes of its own;
// run by an ordinary user it is this machine, with another home.
type far struct {
	testing.TB
	dir     string   // all of its files
	address string   // of the test's own listener
	home    string   // as seen by this machine
	enter   []string // runs a program there
	sshd    []string

	mu    sync.Mutex
	open  map[*exec.Cmd]bool
	deaf  bool
	count int // of connections, since the beginning
	ended sync.WaitGroup
}

// dirs of the far host that the test needs.
func newFar(t *testing.T, authorized, hostKey string) *far {
	t.Helper()
	program.Need(t, "ssh", "ssh-keygen", "sshd", "busybox")
	sshd, err := exec.LookPath("sshd") // it executes itself and wants its whole path
	if err != nil {
		t.Fatal(err)
	}
	f := &far{TB: t, open: map[*exec.Cmd]bool{}}
	dir, err := os.MkdirTemp("", "far") // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	f.dir = dir
	t.Cleanup(func() { remove(t, dir) })
	config := []string{"UsePAM no", "StrictModes no", "PasswordAuthentication no", "PidFile none", "PermitRootLogin yes"}
	if os.Getuid() == 0 {
		f.home = filepath.Join(dir, "root")
		f.furnish(dir, sshd)
		f.boot(dir)
		f.put(dir, "etc/keys", authorized, 0o644)
		f.put(dir, "etc/host", hostKey, 0o600)
		f.put(dir, "etc/sshd_config", strings.Join(append(config, "HostKey /etc/host", "AuthorizedKeysFile /etc/keys"), "\n")+"\n", 0o644)
		f.sshd = append(f.enter, sshd, "-i", "-e", "-f", "/etc/sshd_config")
	} else {
		f.home = filepath.Join(dir, "home")
		f.put(dir, "home/.hushlogin", "", 0o644)
		f.put(dir, "keys", authorized, 0o644)
		f.put(dir, "host", hostKey, 0o600)
		f.put(dir, "sshd_config", strings.Join(append(config, "HostKey "+dir+"/host", "AuthorizedKeysFile "+dir+"/keys", "SetEnv HOME="+f.home), "\n")+"\n", 0o644)
		f.sshd = []string{sshd, "-i", "-e", "-f", dir + "/sshd_config"}
	}
	f.listen()
	return f
}

// remove removes the files of a host. The processes of one that was cut off or
// ended may still change them for a moment.
func remove(t *testing.T, dir string) {
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_ = exec.Command("chmod", "-R", "u+rwX", dir).Run() // fails for files that have gone
		err := os.RemoveAll(dir)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Error(err)
			return
		}
	}
}

func (f *far) put(dir, name, content string, mode os.FileMode) {
	f.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		f.Fatal(err)
	}
}

// furnish makes a root file system: busybox, sshd with its libraries, two users.
func (f *far) furnish(dir, sshd string) {
	f.Helper()
	script := `set -e
cd "$1"; sshd=$2; busybox=$3
chmod 755 .
mkdir -p bin usr/bin usr/sbin usr/lib etc root run/sshd proc dev sys tmp old
chmod 700 root; chmod 1777 tmp
cp "$busybox" bin/busybox
for applet in $(bin/busybox --list); do test -e bin/$applet || ln -s busybox bin/$applet; done
for file in "$sshd" $(ldd "$sshd" | grep -o '/[^ ]*'); do mkdir -p ".${file%/*}"; cp -L "$file" ".$file"; done
echo 'root:x:0:0::/root:/bin/sh' >etc/passwd
echo 'sshd:x:100:100::/run/sshd:/bin/false' >>etc/passwd
echo 'root:x:0:' >etc/group`
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		f.Fatal(err)
	}
	if out, err := exec.Command("sh", "-c", script, "sh", dir, sshd, busybox).CombinedOutput(); err != nil {
		f.Fatalf("cannot make the root file system: %v\n%s", err, out)
	}
}

// boot starts the first process of the host.
func (f *far) boot(dir string) {
	f.Helper()
	const script = `set -e
mount --rbind "$1" "$1"; cd "$1"
mount -t proc proc proc; mount --rbind /dev dev; mount -t tmpfs tmpfs tmp
pivot_root . old
exec chroot . /bin/sh -c 'umount -l /old; echo up; while sleep 1; do :; done'`
	init := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", dir)
	init.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	init.Stderr = nil
	out, err := init.StdoutPipe()
	if err == nil {
		err = init.Start()
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = init.Process.Kill(); _ = init.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		f.Fatalf("the host does not come up: %q, %v", line, err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", init.Process.Pid, init.Process.Pid))
	if err != nil {
		f.Fatal(err)
	}
	f.enter = []string{"nsenter", "--target", strings.TrimSpace(string(children)), "--mount", "--pid", "--root", "--wd"}
}

// listen serves each connection with an sshd of its own, as inetd does.
func (f *far) listen() {
	f.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.address = listener.Addr().String()
	f.Cleanup(func() {
		_ = listener.Close()
		f.cut()
		f.ended.Wait()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.serve(conn)
		}
	}()
}

func (f *far) serve(conn net.Conn) {
	defer conn.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaf {
		return
	}
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		f.Error(err)
		return
	}
	defer file.Close()
	cmd := exec.Command(f.sshd[0], f.sshd[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, file, io.Discard
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		f.Error(err)
		return
	}
	f.open[cmd] = true
	f.count++
	f.ended.Go(func() {
		_ = cmd.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open, cmd)
	})
}

// connections returns how many were made since the last call.
func (f *far) connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := f.count
	f.count = 0
	return count
}

// cut ends every connection, and returns how many there were.
func (f *far) cut() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for cmd := range f.open {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with the one that serves the session
	}
	return len(f.open)
}

// refuse makes the host stop answering connections, or answer again.
func (f *far) refuse(deaf bool) {
	f.mu.Lock()
	f.deaf = deaf
	f.mu.Unlock()
	if deaf {
		f.cut()
	}
}

func (f *far) port() string {
	_, port, _ := net.SplitHostPort(f.address)
	return port
}

// keys makes a key pair.
func keys(t *testing.T) (private, public string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file, read(t, file+".pub")
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// client gives a host the user's ssh: with a configuration of the test's own,
// because OpenSSH finds ~ in the password file.
func client(h *program.Host, f *far, hostKey string) *program.Host {
	h.Helper()
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		h.Fatal(err)
	}
	known := filepath.Join(h.Dir, "known")
	h.Put(known, "[127.0.0.1]:"+f.port()+" "+hostKey)
	h.Put(filepath.Join(h.Dir, "ssh_config"), "Host *\n\tUserKnownHostsFile "+known+"\n\tStrictHostKeyChecking yes\n\tIdentityFile none\n\tIdentityAgent none\n")
	wrapper := filepath.Join(h.Dir, "bin", "ssh")
	h.Put(wrapper, "#!/bin/sh\nexec "+ssh+" -F "+strconv.Quote(filepath.Join(h.Dir, "ssh_config"))+` "$@"`+"\n")
	if err := os.Chmod(wrapper, 0o755); err != nil {
		h.Fatal(err)
	}
	return h.Before(filepath.Dir(wrapper))
}
