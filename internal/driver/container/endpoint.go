package container

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Environment says whose engine to look for.
type Environment struct {
	Get  func(name string) string // a variable
	Home string
	Root string // prefix of the system's paths; empty except in tests
}

// Find returns the address of the engine: the one that the user has chosen for
// the engine's own client, or the first socket that exists.
func (e Environment) Find(kind Kind) (string, error) {
	address, from, dir, err := e.chosen(kind)
	if err != nil {
		return "", err
	}
	if address != "" {
		return checkAddress(kind, address, from, dir)
	}
	sockets := e.sockets(kind)
	for _, path := range sockets {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			return "unix://" + path, nil
		}
	}
	hint := "sudo apt-get install docker.io, or DOCKER_HOST=unix:///where/it/is"
	if kind == Podman {
		hint = "sudo apt-get install podman && systemctl --user start podman.socket, or CONTAINER_HOST=unix:///where/it/is"
	}
	return "", fault.New(fault.Unavailable, "cannot find %s: there is no socket at %s", kind.Title(), strings.Join(sockets, ", ")).WithHint("%s", hint)
}

// chosen is the address from a variable or Docker's context, with the directory
// of the files of a TLS connection.
func (e Environment) chosen(kind Kind) (address, from, dir string, err error) {
	if kind == Podman {
		return e.Get("CONTAINER_HOST"), "CONTAINER_HOST", "", nil
	}
	config := e.Get("DOCKER_CONFIG")
	if config == "" && e.Home != "" {
		config = filepath.Join(e.Home, ".docker")
	}
	if host := e.Get("DOCKER_HOST"); host != "" {
		if e.Get("DOCKER_TLS_VERIFY") != "" {
			dir = cmp.Or(e.Get("DOCKER_CERT_PATH"), config)
		}
		return host, "DOCKER_HOST", dir, nil
	}
	name, from := e.Get("DOCKER_CONTEXT"), "DOCKER_CONTEXT"
	if name == "" && config != "" {
		from = filepath.Join(config, "config.json")
		if name, err = currentContext(from); err != nil {
			return "", "", "", err
		}
	}
	if name == "" || name == "default" {
		return "", "", "", nil
	}
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	path := filepath.Join(config, "contexts", "meta", id, "meta.json")
	address, verified, err := contextHost(path)
	if err != nil {
		return "", "", "", fault.Wrap(fault.Invalid, err, "cannot use Docker's context %q of %s", name, from).WithHint("docker context use default")
	}
	if tls := filepath.Join(config, "contexts", "tls", id, "docker"); verified {
		if _, err := os.Stat(filepath.Join(tls, "ca.pem")); err == nil {
			dir = tls
		}
	}
	return address, "the context " + name, dir, nil
}

func currentContext(path string) (string, error) {
	var c struct {
		CurrentContext string `json:"currentContext"`
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "cannot read Docker's settings in %s", path)
	}
	return c.CurrentContext, nil
}

func contextHost(path string) (address string, verified bool, err error) {
	var c struct {
		Endpoints struct {
			Docker struct {
				Host          string
				SkipTLSVerify bool
			} `json:"docker"`
		}
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil && c.Endpoints.Docker.Host == "" {
		err = errors.New("it names no host")
	}
	return c.Endpoints.Docker.Host, !c.Endpoints.Docker.SkipTLSVerify, err
}

// certificates is the part of an address that names the directory of a TLS
// connection's files.
const certificates = "?certificates="

// Certificates splits the address of an engine behind TLS from the directory of its
// ca.pem, cert.pem and key.pem, which is empty for every other address.
func Certificates(address string) (host, dir string) {
	host, dir, _ = strings.Cut(address, certificates)
	return host, dir
}

// checkAddress refuses an address that would let anyone on the way use the
// engine. dir has the files of a TLS connection.
func checkAddress(kind Kind, address, from, dir string) (string, error) {
	refused := func(why, hint string) (string, error) {
		return "", fault.New(fault.Unsupported, "cannot use the engine %q of %s: %s", address, from, why).WithHint("%s", hint)
	}
	at, err := url.Parse(address)
	scheme := ""
	if err == nil {
		scheme = at.Scheme
	}
	switch {
	case scheme == "unix" && at.Host == "" && filepath.IsAbs(at.Path):
		return address, nil
	case kind == Podman:
		// Podman reads the system call filter from a file on its own machine.
		return refused("Podman is used by Unix sockets only", "litterbox machine add NAME ssh://user@host, and --machine NAME, which needs no engine there")
	case scheme == "ssh":
		return address, nil // remote.Reach reports what is wrong with it
	case (scheme == "tcp" || scheme == "https") && at.Port() != "" && at.Path == "" && at.RawQuery == "" && at.User == nil:
		if dir == "" {
			return refused("without TLS, anyone on the network path could use it", "DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=/where/the/keys/are, or DOCKER_HOST=ssh://user@host")
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return "", driver.Seal(err, "cannot find the certificates of the engine")
		}
		return "tcp://" + at.Host + certificates + dir, nil
	}
	return refused("it is not unix:///path, ssh://user@host or tcp://host:port", "unset DOCKER_HOST, or DOCKER_HOST=unix:///var/run/docker.sock")
}

// sockets lists where an engine's socket may be, that of the user first.
func (e Environment) sockets(kind Kind) []string {
	runtime := e.Get("XDG_RUNTIME_DIR")
	var all []string
	own := func(dir string, names ...string) {
		if filepath.IsAbs(dir) {
			for _, name := range names {
				all = append(all, filepath.Join(dir, name))
			}
		}
	}
	if kind == Podman {
		own(runtime, "podman/podman.sock")
		return append(all, e.Root+"/run/podman/podman.sock")
	}
	all = append(all, e.Root+"/var/run/docker.sock")
	own(runtime, "docker.sock") // rootless
	// Docker Desktop, Colima and OrbStack.
	own(e.Home, ".docker/run/docker.sock", ".colima/default/docker.sock", ".orbstack/run/docker.sock")
	return all
}
