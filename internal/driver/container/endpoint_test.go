package container_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
)

func TestEnginesAreFound(t *testing.T) {
	dir, err := os.MkdirTemp("", "found-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	put := func(path, content string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listen := func(path string) string {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return "unix://" + path
	}
	desktop, rootless, podman := listen("home/.docker/run/docker.sock"), listen("run/docker.sock"), listen("run/podman/podman.sock")
	id := func(context string) string {
		sum := sha256.Sum256([]byte(context))
		return hex.EncodeToString(sum[:])
	}
	for context, skip := range map[string]string{"tls": "false", "open": "true"} {
		put("contexts/contexts/meta/"+id(context)+"/meta.json", `{"Endpoints": {"docker": {"Host": "tcp://host:2376", "SkipTLSVerify": `+skip+`}}}`)
		put("contexts/contexts/tls/"+id(context)+"/docker/ca.pem", "")
	}
	put("contexts/contexts/meta/"+id("colima")+"/meta.json", `{"Name": "colima", "Endpoints": {"docker": {"Host": "unix:///colima.sock"}}}`)
	put("contexts/config.json", `{"currentContext": "colima"}`)
	put("broken/config.json", `{`)
	for _, c := range []struct {
		name       string
		kind       container.Kind
		env        map[string]string
		want, text string
	}{
		{name: "a variable", kind: container.Docker, env: map[string]string{"DOCKER_HOST": "unix:///x.sock", "DOCKER_CONFIG": dir + "/contexts"}, want: "unix:///x.sock"},
		{name: "the current context", kind: container.Docker, env: map[string]string{"DOCKER_CONFIG": dir + "/contexts"}, want: "unix:///colima.sock"},
		{name: "a context of the variable", kind: container.Docker, env: map[string]string{"DOCKER_CONFIG": dir + "/contexts", "DOCKER_CONTEXT": "other"}, text: `cannot use Docker's context "other"`},
		{name: "rootless", kind: container.Docker, env: map[string]string{"XDG_RUNTIME_DIR": dir + "/run"}, want: rootless},
		{name: "desktop", kind: container.Docker, want: desktop},
		{name: "podman", kind: container.Podman, env: map[string]string{"XDG_RUNTIME_DIR": dir + "/run", "DOCKER_HOST": "unix:///x.sock"}, want: podman},
		{name: "no podman", kind: container.Podman, text: "cannot find Podman: there is no socket at " + dir + "/root/run/podman/podman.sock"},
		{name: "over ssh", kind: container.Docker, env: map[string]string{"DOCKER_HOST": "ssh://me@host"}, want: "ssh://me@host"},
		{name: "over TLS", kind: container.Docker, env: map[string]string{"DOCKER_HOST": "tcp://host:2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/keys"}, want: "tcp://host:2376?certificates=/keys"},
		{name: "over TLS, keys at home", kind: container.Docker, env: map[string]string{"DOCKER_HOST": "tcp://host:2376", "DOCKER_TLS_VERIFY": "1"}, want: "tcp://host:2376?certificates=" + dir + "/home/.docker"},
		{name: "a context over TLS", kind: container.Docker, env: map[string]string{"DOCKER_CONFIG": dir + "/contexts", "DOCKER_CONTEXT": "tls"}, want: "tcp://host:2376?certificates=" + dir + "/contexts/contexts/tls/" + id("tls") + "/docker"},
		{name: "a context that verifies nothing", kind: container.Docker, env: map[string]string{"DOCKER_CONFIG": dir + "/contexts", "DOCKER_CONTEXT": "open"}, text: "without TLS"},
		{name: "in the open", kind: container.Docker, env: map[string]string{"DOCKER_HOST": "tcp://host:2375"}, text: "without TLS"},
		{name: "no address", kind: container.Docker, env: map[string]string{"DOCKER_HOST": "host"}, text: "it is not unix:///path"},
		{name: "Podman over ssh", kind: container.Podman, env: map[string]string{"CONTAINER_HOST": "ssh://host/run/podman.sock"}, text: "Unix sockets only"},
		{name: "broken settings", kind: container.Docker, env: map[string]string{"DOCKER_CONFIG": dir + "/broken"}, text: "cannot read Docker's settings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := container.Environment{Get: func(name string) string { return c.env[name] }, Home: dir + "/home", Root: dir + "/root"}
			got, err := e.Find(c.kind)
			if got != c.want || (err != nil) != (c.text != "") || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %q, %v; want %q, %q", got, err, c.want, c.text)
			}
		})
	}
}
