package moby_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container/moby"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// engine answers like an engine, over a Unix socket: a status and a body, by
// method and path without the version.
func engine(t *testing.T, api string, answers map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "engine-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.Path
		if rest, versioned := strings.CutPrefix(at, "/v1."); versioned {
			_, rest, _ = strings.Cut(rest, "/")
			at = "/" + rest
		}
		w.Header().Set("Api-Version", api)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(io.Discard, r.Body)
		answer, known := answers[r.Method+" "+at]
		if !known && at != "/_ping" {
			answer = "404 " + r.Method + " " + at + " is not there"
		}
		status, body, _ := strings.Cut(answer, " ")
		code := 200
		switch status {
		case "404":
			code, body = 404, `{"message": "`+body+`"}`
		case "409":
			code, body = 409, `{"message": "`+body+`"}`
		case "500":
			code, body = 500, `{"message": "`+body+`"}`
		case "201":
			code = 201
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "unix://" + path
}

// Each error says what is wrong and how to fix it.
func TestErrorsSayWhatMends(t *testing.T) {
	const name = "litterbox-0123456789abcdef"
	state := t.TempDir()
	record := container.Record{Name: name, Image: "sha256:1", Shown: "debian:12", State: state}
	inspected := func(now string) string {
		return `200 {"Id": "1", "State": ` + now + `, "Config": {"Labels": {"dev.litterbox.state": "` + state + `"}}}`
	}
	volume := `200 {"Name": "` + name + `", "Labels": {"dev.litterbox.state": "` + state + `"}}`
	for _, c := range []struct {
		name    string
		op      container.Op
		api     string
		answers map[string]string
		is      error
		text    string
		hint    string
	}{
		{name: "too old", op: container.OpConnect, api: "1.24", text: "minimum supported API version", hint: "install Docker 20.10", is: driver.ErrUnsupported},
		{name: "other containers", op: container.OpConnect, answers: map[string]string{"GET /version": `200 {"Os": "windows", "Version": "1"}`}, text: "containers of windows"},
		{name: "no image", op: container.OpImage, answers: map[string]string{"POST /images/create": "404 manifest unknown"}, text: "manifest unknown", hint: "docker pull debian:12"},
		{
			name: "other architecture", op: container.OpImage, text: "for linux on s390x", hint: "docker pull --platform linux/",
			answers: map[string]string{"GET /images/debian:12/json": `200 {"Id": "sha256:1", "Os": "linux", "Architecture": "s390x"}`},
		},
		{
			name: "disk full", op: container.OpEnsure, is: driver.ErrDiskFull, text: "no space left", hint: "docker system df",
			answers: map[string]string{"POST /volumes/create": "500 mkdir: no space left on device"},
		},
		{
			name: "image is gone", op: container.OpEnsure, is: driver.ErrUnreachable, text: "the image debian:12 is gone", hint: "docker pull debian:12",
			answers: map[string]string{"GET /volumes/" + name: volume, "POST /containers/create": "404 No such image: sha256:1"},
		},
		{name: "volume is gone", op: container.OpDial, is: driver.ErrMachineLost, text: "were removed"},
		{
			name: "paused", op: container.OpDial, is: driver.ErrUnreachable, text: "it is paused", hint: "docker unpause " + name,
			answers: map[string]string{"GET /containers/" + name + "/json": inspected(`{"Status": "paused", "Running": true, "Paused": true}`)},
		},
		{
			name: "of another", op: container.OpEnsure, is: driver.ErrUnreachable, text: "not made for " + state, hint: "docker rm " + name,
			answers: map[string]string{"GET /containers/" + name + "/json": `200 {"Id": "1", "Config": {"Labels": {}}}`},
		},
		{
			name: "removing another's volume", op: container.OpRemove, text: "not made for " + state,
			answers: map[string]string{"GET /volumes/" + name: `200 {"Name": "` + name + `", "Labels": {}}`},
		},
		{
			name: "what it says moves no terminal", op: container.OpConnect, text: "evil",
			answers: map[string]string{"GET /version": `500 \u001b[2Jevil\r\nline`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.api == "" {
				c.api = "1.41"
			}
			order := container.Order{Op: c.op, Kind: container.Docker, Address: engine(t, c.api, c.answers), Image: "debian:12"}
			if c.op != container.OpConnect && c.op != container.OpImage {
				order.Machine = record
			}
			e := &moby.Engine{}
			var err error
			if c.op == container.OpDial {
				_, err = e.Dial(t.Context(), order)
			} else {
				_, err = e.Do(t.Context(), order, nil)
			}
			if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(fault.HintOf(err), c.hint) {
				t.Errorf("want %q with the hint %q, got %v (%s)", c.text, c.hint, err, fault.HintOf(err))
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\r") {
				t.Errorf("%q moves a terminal", err)
			}
		})
	}
}

func TestNoEngineAnswers(t *testing.T) {
	dir := t.TempDir()
	_, err := (&moby.Engine{}).Do(t.Context(), container.Order{Op: container.OpConnect, Kind: container.Docker, Address: "unix://" + dir + "/none"}, nil)
	if err == nil || !strings.Contains(err.Error(), "does not answer at") || fault.HintOf(err) != "sudo systemctl start docker" {
		t.Errorf("got %v (%s)", err, fault.HintOf(err))
	}
	if os.Geteuid() == 0 {
		return // root may use every socket
	}
	address := engine(t, "1.41", nil)
	if err := os.Chmod(strings.TrimPrefix(address, "unix://"), 0); err != nil {
		t.Fatal(err)
	}
	_, err = (&moby.Engine{}).Do(t.Context(), container.Order{Op: container.OpConnect, Kind: container.Docker, Address: address}, nil)
	if err == nil || !strings.Contains(err.Error(), "this user may not use") || !strings.Contains(fault.HintOf(err), "usermod") {
		t.Errorf("got %v (%s)", err, fault.HintOf(err))
	}
}
