package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// serverScript answers one byte with a byte, and "L" with a gibibyte.
const serverScript = `import os, socket, sys, threading
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(128)
print(s.getsockname()[1], flush=True)
block = b"x" * (1 << 20)
def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while (want := c.recv(1)):
        if want != b"L": c.sendall(want)
        else:
            for _ in range(1024): c.sendall(block)
    c.close()
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`

const serverConfig = `[container]
ports = ["echo"]
[container.services.echo]
command = ["sh", "-c", "exec python3 server.py $PORT_ECHO"]
ready = { port = "echo" }
`

// ports measures a server in a sandbox, reached through a forwarded port,
// beside the same server on this machine.
func (b *bench) ports() error {
	if _, err := exec.LookPath("python3"); err != nil {
		b.report.missing("forwarded ports: python3, which the server is written in, is not installed")
		return nil
	}
	repo := filepath.Join(b.dir, "ports")
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]string{"server.py": serverScript, ".litterbox.toml": serverConfig} {
		if err := os.WriteFile(filepath.Join(repo, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	for _, argv := range [][]string{
		{"git", "init", "-q"}, {"git", "add", "-A"}, {"git", "commit", "-qm", "first"},
		{b.litterbox, "create", "ports"}, {b.litterbox, "service", "ports", "start"},
	} {
		if err := b.command(repo, argv...); err != nil {
			return err
		}
	}
	listed := exec.Command(b.litterbox, "ports", "ports", "--json")
	listed.Dir, listed.Env = repo, b.env
	output, err := listed.Output()
	if err != nil {
		return err
	}
	var numbers []struct{ Host int }
	if err := json.Unmarshal(output, &numbers); err != nil {
		return err
	}
	server := exec.Command("python3", filepath.Join(repo, "server.py"), "0")
	said, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	var number int
	if _, err := fmt.Fscan(said, &number); err != nil {
		return err
	}
	here, beside := fmt.Sprintf("127.0.0.1:%d", numbers[0].Host), fmt.Sprintf("127.0.0.1:%d", number)
	for _, kind := range []struct {
		what   string
		rounds int
		step   func(address string) (step, error)
	}{
		{"connect to a server inside and get a byte, through a forwarded port", max(b.rounds, 500), connecting},
		{"a byte there and back on an open connection, through a forwarded port", max(b.rounds, 500), pinging},
		{"1 GiB from a server inside, through a forwarded port", min(b.rounds, 5), loading},
	} {
		through, err := kind.step(here)
		if err != nil {
			return err
		}
		other, err := kind.step(beside)
		if err != nil {
			return err
		}
		timed := *b
		timed.rounds = kind.rounds
		timings, err := timed.measure(through, other)
		if err != nil {
			return err
		}
		b.timed(kind.what, "", timings[0], direct, timings[1])
	}
	return b.command(repo, b.litterbox, "delete", "--force", "ports")
}

func exchange(conn net.Conn) error {
	if _, err := conn.Write([]byte("p")); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

func connecting(address string) (step, error) {
	return func(int) error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		return exchange(conn)
	}, nil
}

// pinging keeps its connection until the program ends.
func pinging(address string) (step, error) {
	conn, err := net.Dial("tcp", address)
	return func(int) error { return exchange(conn) }, err
}

func loading(address string) (step, error) {
	return func(int) error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("L")); err != nil {
			return err
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(conn, 1<<30), make([]byte, 1<<20))
		return err
	}, nil
}
