// Package service_test runs real servers as services of the true program, and
// talks to them through forwarded ports as their users do: with psql, redis-cli,
// curl's protocol and a browser.
package service_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
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

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

//go:embed server.js
var server string

const configuration = `
[container]
ports = ["web", "raw", "pg", "redis"]

[container.services.pg]
command = ["sh", "-ec", """
PATH=$(echo /usr/lib/postgresql/*/bin | cut -d' ' -f1):$PATH
test -e $HOME/pg/PG_VERSION || initdb --pgdata $HOME/pg --auth trust --username agent --locale C --no-sync
exec postgres -D $HOME/pg -p $PORT_PG -c fsync=off -c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp
"""]
ready = { command = ["sh", "-c", "pg_isready -h 127.0.0.1 -p $PORT_PG"], timeout = "5m" }
signals = { stop = "SIGINT" }
stop-timeout = "60s"

[container.services.redis]
command = ["sh", "-c", "mkdir -p $HOME/redis && exec redis-server --port $PORT_REDIS --dir $HOME/redis --appendonly yes"]
ready = { port = "redis" }

[container.services.web]
command = ["node", "server.js"]
ready = { file = "/tmp/ready" }
needs = ["pg", "redis"]
`

// patience bounds the wait for what is sure to come, even on a loaded machine.
const patience = 2 * time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// port returns the number on this machine of a sandbox's port.
func port(h *program.Host, sandbox, name string) string {
	h.Helper()
	var ports []struct {
		Name string
		Host int
	}
	if err := json.Unmarshal([]byte(h.Must("ports", sandbox, "--json")), &ports); err != nil {
		h.Fatal(err)
	}
	for _, p := range ports {
		if p.Name == name {
			return strconv.Itoa(p.Host)
		}
	}
	h.Fatalf("no port %q: %+v", name, ports)
	return ""
}

// start makes a sandbox with the configuration's services and waits for them.
func start(t *testing.T, names ...string) *program.Host {
	t.Helper()
	h := built.Anywhere(t)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), configuration)
	h.Put(filepath.Join(h.Repo, "server.js"), server)
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "services")
	for _, name := range names {
		h.Must("create", name)
	}
	return h
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: patience}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A database, a cache and a development server run as services, are reached
// from this machine, and keep their data through stop, start and kill -9.
func TestDatabases(t *testing.T) {
	program.Need(t, "psql", "pg_isready", "postgres", "redis-server", "redis-cli", "node")
	h := start(t, "box")
	h.Must("service", "box", "start")
	sql := func(statement string) string {
		t.Helper()
		got := h.Command(h.Repo, "psql", "-h", "127.0.0.1", "-p", port(h, "box", "pg"), "-U", "agent", "-d", "postgres", "-At", "-c", statement)
		if got.Code != 0 {
			t.Fatalf("%s: %s", statement, got.Stderr)
		}
		return strings.TrimSpace(got.Stdout)
	}
	redis := func(words ...string) string {
		t.Helper()
		got := h.Command(h.Repo, "redis-cli", append([]string{"-p", port(h, "box", "redis")}, words...)...)
		if got.Code != 0 {
			t.Fatalf("%q: %s", words, got.Stderr)
		}
		return strings.TrimSpace(got.Stdout)
	}
	sql("create table kept (n int)")
	sql("insert into kept select generate_series(1, 1000)")
	redis("set", "kept", "yes")
	if page := get(t, "http://127.0.0.1:"+port(h, "box", "web")+"/"); !strings.Contains(page, "<title>served</title>") {
		t.Errorf("the page: %q", page)
	}
	check := func(when string) {
		t.Helper()
		if n, value := sql("select count(*) from kept"), redis("get", "kept"); n != "1000" || value != "yes" {
			t.Errorf("%s: %s rows, and %q", when, n, value)
		}
	}
	check("at first")
	// A database's workers leave its session; a command does not count them as
	// its own.
	if got := h.Inside("box", "true"); strings.Contains(got.Stderr, "still running") {
		t.Errorf("a command is said to have left something: %s", got.Stderr)
	}
	h.Must("stop", "box")
	h.Must("service", "box", "start")
	check("after a stop")
	if log := h.Must("service", "box", "logs", "pg", "--tail", "-1"); strings.Contains(log, "not properly shut down") || !strings.Contains(log, "fast shutdown request") {
		t.Errorf("the database was not ended as it wants to be:\n%s", log)
	}
	keeper, _ := h.MustProcesses("box")
	if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.Must("service", "box", "start")
	check("after kill -9 of the keeper")
	_, guest := h.MustProcesses("box")
	if err := syscall.Kill(guest, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the services run again", func() bool { return h.Litterbox("service", "box", "start").Code == 0 })
	check("after kill -9 of the guest")
	if log := h.Must("service", "box", "logs", "pg", "--tail", "-1"); !strings.Contains(log, "not properly shut down") {
		t.Errorf("the database does not know of the crash:\n%s", log)
	}
	// Restarting one leaves the others alone.
	before := sql("select pg_postmaster_start_time()")
	h.Must("service", "box", "restart", "web")
	if after := sql("select pg_postmaster_start_time()"); after != before {
		t.Errorf("the database was restarted with the server: %s, then %s", before, after)
	}
}

// Several sandboxes side by side have ports of their own, which carry all
// traffic: many connections at once, large answers, half-closed ones.
func TestPorts(t *testing.T) {
	program.Need(t, "node")
	h := start(t)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), `
[container]
ports = ["web", "raw"]
[container.services.web]
command = ["node", "server.js"]
ready = { file = "/tmp/ready" }
`)
	var creating sync.WaitGroup
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		creating.Go(func() {
			if got := h.Litterbox("create", name); got.Code != 0 {
				t.Errorf("create %s: %s", name, got.Stderr)
			}
		})
	}
	creating.Wait()
	seen := map[string]string{}
	for _, name := range names {
		for _, of := range []string{"web", "raw"} {
			number := port(h, name, of)
			if other := seen[number]; other != "" {
				t.Errorf("%s of %s and %s are both %s", of, name, other, number)
			}
			seen[number] = name
		}
	}
	h.Must("service", "a", "start")
	web := "http://127.0.0.1:" + port(h, "a", "web")
	var asking sync.WaitGroup
	for i := range 300 {
		asking.Go(func() {
			// A connection each: the client would share them.
			client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
			response, err := client.Get(fmt.Sprintf("%s/slow?%d", web, i))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != fmt.Sprintf("slow ?%d", i) {
				t.Errorf("%d: %q, %v", i, body, err)
			}
		})
	}
	asking.Wait()
	if n := len(get(t, web+"/large")); n != 32<<20 {
		t.Errorf("%d bytes of a large answer", n)
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+port(h, "a", "raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(make([]byte, 5<<20)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != fmt.Sprintf("got %d\n", 5<<20) {
		t.Errorf("half-closed: %q, %v", answer, err)
	}
	// From inside they lead to nothing on this machine.
	if got := h.Inside("b", "sh", "-c", "curl -sS --max-time 20 http://127.0.0.1:"+port(h, "a", "web")+"/"); got.Code == 0 {
		t.Errorf("one sandbox reaches the port of another: %s", got.Stdout)
	}
}

// A browser loads a page through a forwarded port, its script talks over a
// websocket, and the cookies of two sandboxes stay apart.
func TestBrowser(t *testing.T) {
	program.Need(t, "node", "chromium")
	h := start(t)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), `
[container]
ports = ["web", "raw"]
[container.services.web]
command = ["node", "server.js"]
ready = { file = "/tmp/ready" }
`)
	var urls []string
	for _, name := range []string{"one", "two"} {
		h.Must("create", name)
		h.Must("service", name, "start")
		urls = append(urls, h.Must("open", name, "web", "--print"))
	}
	// Just-killed processes of the browser may still write, so files that
	// cannot be removed are left.
	profile, err := os.MkdirTemp("", "litterbox-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	browser := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+profile, "--remote-debugging-port=0", urls[0]+"?next="+urls[1])
	var said strings.Builder
	browser.Stdout, browser.Stderr = &said, &said
	browser.WaitDelay = 5 * time.Second
	browser.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-browser.Process.Pid, syscall.SIGKILL)
		_ = browser.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	}()
	for i, name := range []string{"one", "two"} {
		var report struct{ Said, Before, At string }
		eventually(t, "the page of "+name+" reports", func() bool {
			log := h.Must("service", name, "logs", "web", "--tail", "-1")
			_, text, found := strings.Cut(log, "report ")
			text, _, _ = strings.Cut(text, "\n")
			return found && json.Unmarshal([]byte(text), &report) == nil
		})
		if report.Said != "pong: ping from the page" || report.Before != "" || report.At != "web."+name+".localhost" {
			t.Errorf("page %d: %+v", i, report)
		}
	}
}

// A sandbox that turns its logs into links shows nothing of the host in them,
// even once it is stopped and the host itself reads.
func TestStoredLogsStayInside(t *testing.T) {
	h := built.Anywhere(t)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), `
[container.services]
talks = { command = ["sh", "-c", "echo control; exec sleep 600"] }
links = { command = ["sleep", "600"], autostart = false }
`)
	secret := filepath.Join(h.Dir, "secret")
	h.Put(filepath.Join(secret, "links.0000000000000000.log"), "of the host\n")
	h.Must("create", "box")
	h.Must("service", "box", "start", "talks")
	eventually(t, "the control is logged", func() bool { return strings.Contains(h.Must("service", "box", "logs", "talks"), "control") })
	plant := func(script string) {
		t.Helper()
		if got := h.Inside("box", "sh", "-ec", "cd $HOME/.local/state/litterbox; SECRET='"+secret+"'; "+script); got.Code != 0 {
			t.Fatal(got.Stderr)
		}
		h.Must("stop", "box")
		if got := h.Litterbox("service", "box", "logs", "links"); strings.Contains(got.Stdout+got.Stderr, "of the host") {
			t.Errorf("%s shows a file of the host:\n%s%s", script, got.Stdout, got.Stderr)
		}
	}
	plant("ln -s $SECRET/links.0000000000000000.log services/links.0000000000000000.log")
	if h.Far() { // its files are there, and nothing here reads them
		if got := h.Litterbox("service", "box", "logs", "talks"); got.Code == 0 || !strings.Contains(got.Stderr, "litterbox start box") {
			t.Errorf("the logs of a sandbox that is stopped in another machine: %+v", got)
		}
		h.Must("start", "box")
	}
	if got := h.Must("service", "box", "logs", "talks"); !strings.Contains(got, "control") {
		t.Errorf("the logs of a stopped sandbox cannot be read: %q", got)
	}
	plant("rm services/links.*; mkfifo services/links.0000000000000000.log")
	plant("mv services away; ln -s $SECRET services") // one may be writing there
	plant("cd ..; mv litterbox away; ln -s $SECRET litterbox; mkdir -p $HOME/x; ln -s / $HOME/x/y")
}
