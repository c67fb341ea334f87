package clients_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"testing"
)

func streamClients() []client {
	return []client{
		{
			Name: "a server that speaks first", Needs: []string{"python3"}, Want: "220 ready\nyou said good day",
			Serve: func(t *testing.T) ([]string, string) {
				h := outside.Host("mail.outside.example")
				h.Serve(t, 25, func(conn net.Conn) {
					_, _ = io.WriteString(conn, "220 ready\n")
					line, _ := bufio.NewReader(conn).ReadString('\n')
					_, _ = io.WriteString(conn, "you said "+line)
				})
				return []string{h.Name + ":25"}, python(h.Name, 25, `print(f.readline().decode(), end=""); s.sendall(b"good day\n"); print(f.read().decode())`)
			},
		},
		{
			// Only the end of the client's stream tells the server to answer.
			Name: "half close", Needs: []string{"python3"}, Want: fmt.Sprintf("%x", sha256.Sum256(make([]byte, 3<<20))),
			Serve: func(t *testing.T) ([]string, string) {
				h := outside.Host("digest.outside.example")
				h.Serve(t, 9000, func(conn net.Conn) {
					digest := sha256.New()
					_, _ = io.Copy(digest, conn)
					_, _ = fmt.Fprintf(conn, "%x", digest.Sum(nil))
				})
				return []string{h.Name + ":9000"}, python(h.Name, 9000, `s.sendall(bytes(3 << 20)); s.shutdown(socket.SHUT_WR); print(f.read().decode())`)
			},
		},
		{
			Name: "a flooding server", Needs: []string{"python3"}, Want: "enough",
			Serve: func(t *testing.T) ([]string, string) {
				h := outside.Host("flood.outside.example")
				h.Serve(t, 9000, func(conn net.Conn) {
					for data := make([]byte, 64<<10); ; {
						if _, err := conn.Write(data); err != nil {
							return // the client has had enough
						}
					}
				})
				return []string{h.Name + ":9000"}, python(h.Name, 9000, `assert len(f.read(200 << 20)) == 200 << 20; print("enough")`)
			},
		},
	}
}

// python is a script that connects s to a host's port, with f to read from it.
func python(host string, port int, body string) string {
	return fmt.Sprintf("python3 -c '\nimport socket\ns = socket.create_connection((%q, %d), 30); f = s.makefile(\"rb\")\n%s\n'", host, port, body)
}
