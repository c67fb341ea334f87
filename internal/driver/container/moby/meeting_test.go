package moby_test

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container/moby"
)

// picky is an engine without that directory of this machine: it refuses a
// container that mounts it when that is made, or only when it is started.
type picky struct {
	late bool
	name string

	mu      sync.Mutex
	mounted bool   // the container has the directory
	made    bool   // there is a container
	did     string // what was asked for, in words
}

func (p *picky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	refuse := func(code int, why string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"message": "`+why+`"}`)
	}
	denied := "mounts denied: " + container.MeetingPath
	_, at, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	w.Header().Set("Api-Version", "1.41")
	switch what := r.Method + " " + at; {
	case strings.HasSuffix(what, "_ping"):
	case what == "GET containers/"+p.name+"/json":
		refuse(404, "no such container")
	case what == "GET volumes/"+p.name:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"Name": "`+p.name+`"}`)
	case what == "POST containers/create":
		p.mounted = strings.Contains(string(body), container.MeetingPath)
		if p.mounted && !p.late {
			p.did += "refused "
			refuse(400, denied)
			return
		}
		p.made, p.did = true, p.did+"made "
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(201)
		_, _ = io.WriteString(w, `{"Id": "1"}`)
	case what == "HEAD containers/"+p.name+"/archive":
		w.Header().Set("X-Docker-Container-Path-Stat", base64.StdEncoding.EncodeToString([]byte(`{"name": "mark"}`)))
	case what == "POST containers/"+p.name+"/start" && p.mounted:
		p.did += "refused "
		refuse(500, denied)
	case what == "POST containers/"+p.name+"/start" && p.made:
		p.did += "started"
		w.WriteHeader(204)
	case what == "DELETE containers/"+p.name:
		p.made, p.did = false, p.did+"removed "
		w.WriteHeader(204)
	default:
		refuse(500, what)
	}
}

// An engine that cannot mount a directory of this machine has containers without it.
func TestContainerWithoutTheDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		late bool
		want string
	}{
		"refused at once":    {false, "refused made started"},
		"refused at a start": {true, "made refused removed made started"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "engine-") // a socket's path is short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			listener, err := net.Listen("unix", filepath.Join(dir, "sock"))
			if err != nil {
				t.Fatal(err)
			}
			p := &picky{late: c.late, name: "litterbox-0123456789abcdef"}
			server := &http.Server{Handler: p}
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(func() { _ = server.Close() })

			record := container.Record{Kind: container.Docker, Address: "unix://" + filepath.Join(dir, "sock"), Name: p.name, Image: "sha256:1", Shown: "debian:12", State: dir}
			left := filepath.Join(record.Meeting(), "left")
			for _, made := range []error{os.MkdirAll(record.Meeting(), 0o700), os.WriteFile(left, nil, 0o600)} {
				if made != nil {
					t.Fatal(made)
				}
			}
			e := &moby.Engine{Program: func(string) (moby.Program, error) { return moby.Program{ID: "1"}, nil }}
			_, err = e.Do(t.Context(), container.Order{Op: container.OpEnsure, Kind: record.Kind, Address: record.Address, Machine: record}, nil)
			if err != nil || p.did != c.want {
				t.Errorf("the engine has %q, %v; want %q", p.did, err, c.want)
			}
			if _, err := os.Stat(left); !os.IsNotExist(err) {
				t.Errorf("a socket of a killed process is still there: %v", err)
			}
		})
	}
}
