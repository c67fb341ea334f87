package engine

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// DockerNeeds are the programs that [Docker] runs; without them a test is skipped.
var DockerNeeds = []string{"dockerd", "docker", "runc", "setpriv", "nsenter"}

// Runtime is one of Docker's, as its settings name it.
type Runtime struct {
	Path string   `json:"path"`
	Args []string `json:"runtimeArgs,omitempty"`
}

// Docker starts a Docker daemon with its files in dir. runtimes are those
// besides runc; settings are others of daemon.json.
func Docker(t testing.TB, world World, dir string, runtimes map[string]Runtime, settings map[string]any) *Engine {
	t.Helper()
	e := &Engine{t: t, world: world, Driver: "docker", Dir: dir, log: filepath.Join(dir, "dockerd.log")}
	e.daemon(filepath.Join(dir, "docker.sock"), runtimes, settings)
	e.Start()
	return e
}

// daemon completes an engine with the command lines of Docker's daemon and client.
func (e *Engine) daemon(socket string, runtimes map[string]Runtime, settings map[string]any) {
	t, dir := e.t, e.Dir
	t.Helper()
	all := map[string]Runtime{"bounded": {Path: put(t, filepath.Join(dir, "bounded"), bounded)}}
	for name, one := range runtimes {
		all[name] = one
	}
	file := map[string]any{"default-runtime": "bounded", "runtimes": all}
	for name, value := range settings {
		file[name] = value
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	e.Address = "unix://" + socket
	e.Command = []string{client("docker"), "--host", e.Address}
	e.service = []string{
		"dockerd", "--config-file", put(t, filepath.Join(dir, "daemon.json"), string(text)),
		"--data-root", filepath.Join(dir, "docker"), "--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "docker.pid"),
		"--host", e.Address, "--iptables=false", "--ip6tables=false", "--bridge=none",
	}
}

// bounded is runc without the capabilities that this machine itself lacks:
// Docker still names them for programs of root, and runc refuses.
const bounded = `#!/bin/sh
previous=
for argument; do
	case $previous in
	--bundle) file=$argument/config.json ;;
	--process) file=$argument ;;
	*) file= ;;
	esac
	if [ -n "$file" ] && ! setpriv --dump | grep -q '^Capability bounding set:.*sys_resource'; then
		sed -i 's/,"CAP_SYS_RESOURCE"//g; s/"CAP_SYS_RESOURCE",//g' "$file"
	fi
	previous=$argument
done
exec runc "$@"
`
