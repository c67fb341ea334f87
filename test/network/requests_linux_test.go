package network_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// secureServer serves HTTPS, HTTP/2 included, at address4, and remembers what
// it was asked. Its authority is one that the host trusts.
type secureServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func serveSecurely(t *testing.T, h *program.Host) *secureServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the test's own"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(address4)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	roots := filepath.Join(h.Dir, "host-roots.pem")
	h.Put(roots, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	h.Env = append(h.Env, "SSL_CERT_FILE="+roots)

	s := &secureServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		_, _ = io.WriteString(w, "hello over "+r.Proto+"\n")
	}))
	if s.Listener, err = net.Listen("tcp", address4+":0"); err != nil {
		t.Fatal(err)
	}
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *secureServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Ordinary clients, told nothing, are held to methods and paths inside TLS.
func TestRulesInsideTLS(t *testing.T) {
	h := built.New(t)
	s := serveSecurely(t, h)
	h.Must("create", "box")
	if got := h.Inside("box", "curl", "-sS", "-m", "20", s.URL+"/me/a"); got.Code == 0 {
		t.Errorf("nothing was allowed: %s", got.Stdout)
	}
	// Added while it runs: nothing is restarted, and programs started now trust it.
	h.Must("allow", "box", "GET,HEAD "+s.URL+"/me/")
	curl := func(args ...string) program.Result {
		return h.Inside("box", append([]string{"curl", "-sS", "-m", "20"}, args...)...)
	}
	for _, version := range []string{"--http1.1", "--http2"} {
		if got := curl(version, s.URL+"/me/a"); got.Stdout != "hello over HTTP/2.0\n" {
			t.Errorf("curl %s: %d %s%s", version, got.Code, got.Stdout, got.Stderr)
		}
		for _, args := range [][]string{{s.URL + "/you"}, {"-X", "DELETE", s.URL + "/me/a"}, {"--path-as-is", s.URL + "/me/../you"}, {"-H", "Host: other.example", s.URL + "/me/a"}} {
			got := curl(append([]string{version, "-w", "%{http_code}"}, args...)...)
			if !strings.HasSuffix(got.Stdout, "\n403") || !strings.HasPrefix(got.Stdout, "litterbox: ") {
				t.Errorf("curl %s %q: %d %s%s", version, args, got.Code, got.Stdout, got.Stderr)
			}
		}
	}
	if got := h.Inside("box", "sh", "-c", `echo "$PIP_CERT"`); got.Stdout != "/var/lib/litterbox/roots.pem\n" {
		t.Errorf("programs with roots of their own are told of %q", got.Stdout)
	}
	clients := map[string][]string{
		"python3": {"python3", "-c", "import urllib.request, sys; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')", s.URL + "/me/python"},
		"node":    {"node", "-e", "fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t))", s.URL + "/me/node"},
	}
	for name, argv := range clients {
		if _, err := exec.LookPath(name); err != nil {
			continue // not every machine has every client; curl is everywhere
		}
		if got := h.Inside("box", argv...); !strings.HasPrefix(got.Stdout, "hello over ") {
			t.Errorf("%s: %d %s%s", name, got.Code, got.Stdout, got.Stderr)
		}
	}
	for _, asked := range s.requests() {
		if !strings.HasPrefix(asked, "GET /me/") {
			t.Errorf("the server was asked %q", asked)
		}
	}
	var view struct {
		Seen []struct{ Verdict, Method, Path, Why, Process string }
	}
	if err := json.Unmarshal([]byte(h.Must("network", "box", "--json")), &view); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, seen := range view.Seen {
		found = found || seen.Verdict == "denied" && seen.Method == "DELETE" && seen.Path == "/me/a" && strings.HasPrefix(seen.Process, "curl (")
	}
	if !found {
		t.Errorf("the refused request is not recorded: %+v", view.Seen)
	}
	// After a restart the same authority is trusted from the start.
	h.Must("stop", "box")
	if got := curl(s.URL + "/me/again"); got.Code != 0 {
		t.Errorf("after a restart: %s", got.Stderr)
	}
}

// The key that signs for every host must not be found inside.
func TestAuthorityKeyStaysOutside(t *testing.T) {
	h := built.New(t)
	s := serveSecurely(t, h)
	h.Must("create", "box")
	h.Must("allow", "box", "GET "+s.URL+"/me")
	keys, err := filepath.Glob(filepath.Join(h.State, "litterbox", "sandboxes", "*", "authority.pem"))
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	if mode := h.Shell("stat -c %a " + keys[0]).Stdout; mode != "600\n" {
		t.Errorf("its mode is %s", mode)
	}
	script := `cat ` + keys[0] + ` 2>/dev/null; cat /var/lib/litterbox/* /etc/ssl/certs/ca-certificates.crt 2>/dev/null | grep -a PRIVATE; tr '\0' '\n' </proc/self/environ | grep PRIVATE; : >/var/lib/litterbox/roots.pem`
	got := h.Inside("box", "sh", "-c", script)
	if got.Code == 0 || got.Stdout != "" {
		t.Errorf("%d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if roots := h.Inside("box", "cat", "/var/lib/litterbox/roots-own.pem"); !bytes.Contains([]byte(roots.Stdout), []byte("BEGIN CERTIFICATE")) {
		t.Errorf("the sandbox has no roots of its own: %s%s", roots.Stdout, roots.Stderr)
	}
}

// A copy of a sandbox has an authority of its own: the other's keeper never signs
// what one trusts. Snapshots, restores, forks and goldens carry no key.
func TestAuthorityIsNotCopied(t *testing.T) {
	h := built.New(t)
	s := serveSecurely(t, h)
	h.Must("create", "box")
	h.Must("allow", "box", "GET "+s.URL+"/me")
	h.Must("exec", "box", "--", "sh", "-c", "cat /var/lib/litterbox/roots-own.pem >own.pem")
	authorities := func() []string {
		found, err := filepath.Glob(filepath.Join(h.State, "litterbox", "sandboxes", "*", "authority.pem"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := authorities()
	if len(first) != 1 {
		t.Fatalf("there are %v", first)
	}
	before, err := os.ReadFile(first[0])
	if err != nil {
		t.Fatal(err)
	}
	h.Must("snapshot", "box", "here")
	h.Must("exec", "box", "--", "sh", "-c", "echo more >more")
	h.Must("fork", "box", "twin")
	h.Must("restore", "box", "here")
	if got, err := os.ReadFile(first[0]); err != nil || !bytes.Equal(got, before) {
		t.Errorf("a restore changes the authority: %v", err)
	}
	for _, box := range []string{"box", "twin"} {
		h.Must("allow", box, "GET "+s.URL+"/me")
		if got := h.Inside(box, "curl", "-sS", "-m", "60", s.URL+"/me/"+box); got.Code != 0 {
			t.Errorf("%s: curl: %s", box, got.Stderr)
		}
	}
	// Each key lies in one file of the host, and in no layer.
	all := authorities()
	if len(all) != 2 {
		t.Fatalf("two sandboxes have %v", all)
	}
	for _, file := range all {
		_, key, ok := strings.Cut(h.Shell("cat "+file).Stdout, "PRIVATE KEY-----\n")
		line, _, _ := strings.Cut(key, "\n")
		if !ok || len(line) < 60 {
			t.Fatalf("%s holds no key", file)
		}
		if got := h.Shell("grep -rlaF -e '" + line + "' " + h.State + " " + h.Repo).Stdout; got != file+"\n" {
			t.Errorf("the key of %s lies in %q", file, got)
		}
	}
	// The twin does not trust what the first one's keeper signs.
	roots := h.Inside("twin", "cat", "/var/lib/litterbox/roots-own.pem").Stdout
	own := h.Inside("twin", "cat", "own.pem").Stdout
	if roots == "" || own == "" || strings.Contains(roots, strings.TrimSpace(own)) {
		t.Errorf("the twin trusts the first one's authority, or none:\n%s", roots)
	}
}
