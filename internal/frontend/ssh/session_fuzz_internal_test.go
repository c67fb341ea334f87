package ssh

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// FuzzRequests feeds a session with requests. Whatever they hold, only variables
// of the list enter, sizes fit and signals are known ones.
func FuzzRequests(f *testing.F) {
	f.Add("env", ssh.Marshal(struct{ Name, Value string }{"LC_ALL", "C"}))
	f.Add("env", ssh.Marshal(struct{ Name, Value string }{"LD_PRELOAD", "/tmp/x"}))
	f.Add("env", ssh.Marshal(struct{ Name, Value string }{"LC_X=1\x00", "C"}))
	f.Add("signal", ssh.Marshal(struct{ Name string }{"TERM"}))
	f.Add("exec", ssh.Marshal(struct{ Command string }{"git upload-pack ."}))
	f.Add("subsystem", ssh.Marshal(struct{ Name string }{"netconf"}))
	f.Add("window-change", ssh.Marshal(struct{ A, B, C, D uint32 }{1 << 31, 1, 2, 3}))
	f.Add("pty-req", ssh.Marshal(struct {
		Term       string
		A, B, C, D uint32
		Modes      string
	}{"xterm", 80, 24, 0, 0, "\x00"}))
	f.Add("auth-agent-req@openssh.com", []byte{})
	f.Fuzz(func(t *testing.T, kind string, payload []byte) {
		s := &session{resize: make(chan wire.Terminal, 1), signals: make(chan string, 1), terminal: &wire.Terminal{}}
		run, ok := s.ask(&ssh.Request{Type: kind, Payload: payload})
		if run != nil && !ok {
			t.Error("what is refused runs")
		}
		for _, entry := range s.env {
			name, _, _ := strings.Cut(entry, "=")
			if !strings.HasPrefix(name, "LC_") && !strings.Contains(" LANG COLORTERM NO_COLOR TZ GIT_PROTOCOL ", " "+name+" ") || strings.ContainsRune(entry, 0) {
				t.Errorf("%q enters", entry)
			}
		}
		transfers(string(payload))
		(&server{Options: Options{Host: engine.DoorHost{Host: "fix.litterbox", Name: "fix"}}}).inside(string(payload))
	})
}

func TestInside(t *testing.T) {
	t.Parallel()
	s := &server{Options: Options{Host: engine.DoorHost{Host: "fix.litterbox", Name: "fix"}}}
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "fix.litterbox": true, "": true,
		"0.0.0.0": false, "::": false, "example.com": false, "10.0.0.1": false, "localhost.evil.example": false, "127.1": false, "::ffff:10.0.0.1": false,
	} {
		if got := s.inside(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestTransfers(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"git-upload-pack '.'": true, "git upload-pack .": true, "/usr/bin/rsync --server -e.iLs . x": true, "scp -t .": true,
		"git commit -m x": false, "rsync -a a b": false, "make": false, "": false, "scp a b": false,
	} {
		if _, got := transfers(command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}
