package engines_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/engine"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// An engine of another machine is used over TLS and over ssh, and errors say what to
// type.
func TestFarEngine(t *testing.T) {
	whole(t)
	e := docker(t, nil)
	h := e.host(engine.Shell)
	t.Run("TLS", func(t *testing.T) {
		address, keys := e.behindTLS(h)
		h := h.With("DOCKER_HOST=" + address)
		refused(t, h, "create", "box", "anyone on the network path could use it", "DOCKER_TLS_VERIFY=1")
		stranger := filepath.Join(h.Dir, "stranger")
		authority(h, stranger)
		refused(t, h.With("DOCKER_TLS_VERIFY=1", "DOCKER_CERT_PATH="+stranger), "create", "box", "certificate", "docker version")
		e.life(h.With("DOCKER_TLS_VERIFY=1", "DOCKER_CERT_PATH="+keys), "tls")
	})
	t.Run("ssh", func(t *testing.T) {
		program.Need(t, "ssh", "sshd", "ssh-keygen")
		h := h.With("DOCKER_HOST=ssh://root@engine.test")
		known := e.behindSSH(h)
		h = h.Before(filepath.Join(h.Dir, "bin"))
		right, err := os.ReadFile(known)
		if err != nil {
			t.Fatal(err)
		}
		h.Put(known, "")
		refused(t, h, "create", "box", "host key is not known yet", "ssh root@engine.test true")
		h.Put(known, string(right))
		e.life(h, "ssh")
	})
}

func refused(t *testing.T, h *program.Host, command, name string, words ...string) {
	t.Helper()
	got := h.Litterbox(command, name)
	for _, word := range words {
		if got.Code == 0 || !strings.Contains(got.Stderr, word) {
			t.Errorf("%s says nothing of %q: %+v", command, word, got)
		}
	}
}

// life is the life of a sandbox whose keeper outlives the command that made it.
func (e trial) life(h *program.Host, name string) {
	e.Helper()
	e.want(h.Must("doctor", "--driver", "docker"), "^isolation +full, available")
	h.Must("create", name)
	e.want(h.Must("exec", name, "--", "sh", "-c", "echo made >made; echo ran"), "^ran$")
	e.want(h.Git("show", name+":made"), "^made$")
	h.Must("stop", name)
	e.want(h.Must("exec", name, "--", "cat", "made"), "^made$")
	h.Must("delete", "--force", "--purge", name)
	h.Must("prune", "--all", "--yes")
	if left := e.Must("ps", "--all", "--quiet"); left != "" {
		e.Errorf("containers after prune: %q", left)
	}
}

// authority makes a certificate authority and one certificate of it, for a server
// and its client, as Docker's client wants the files.
func authority(h *program.Host, dir string) (*x509.CertPool, tls.Certificate) {
	h.Helper()
	must := func(err error) {
		h.Helper()
		if err != nil {
			h.Fatal(err)
		}
	}
	certify := func(name string, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			IsCA: parent == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		if parent == nil {
			parent, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		must(err)
		made, err := x509.ParseCertificate(der)
		must(err)
		return made, key
	}
	root, rootKey := certify("authority of "+dir, nil, nil)
	leaf, leafKey := certify("engine", root, rootKey)
	der, err := x509.MarshalECPrivateKey(leafKey)
	must(err)
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}))
	key := string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	h.Put(filepath.Join(dir, "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})))
	h.Put(filepath.Join(dir, "cert.pem"), certificate)
	h.Put(filepath.Join(dir, "key.pem"), key)
	pool := x509.NewCertPool()
	pool.AddCert(root)
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	must(err)
	return pool, pair
}

// behindTLS serves the engine to clients that have a certificate.
func (e trial) behindTLS(h *program.Host) (address, keys string) {
	e.Helper()
	keys = filepath.Join(h.Dir, "keys")
	pool, pair := authority(h, keys)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer near.Close()
				far, err := net.Dial("unix", strings.TrimPrefix(e.Address, "unix://"))
				if err != nil {
					return
				}
				defer far.Close()
				go func() {
					_, _ = io.Copy(far, near)
					_ = far.(*net.UnixConn).CloseWrite()
				}()
				_, _ = io.Copy(near, far)
			}()
		}
	}()
	return "tcp://" + listener.Addr().String(), keys
}

// behindSSH puts an ssh into the host's bin that reaches an OpenSSH server of the
// test's own, where the engine is. It returns the file of known hosts.
func (e trial) behindSSH(h *program.Host) (known string) {
	e.Helper()
	at := func(name string) string { return filepath.Join(h.Dir, "ssh", name) }
	if err := os.MkdirAll(at("."), 0o700); err != nil {
		e.Fatal(err)
	}
	var public [2]string
	for i, name := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at(name)).CombinedOutput(); err != nil {
			e.Fatalf("%v: %s", err, out)
		}
		data, err := os.ReadFile(at(name + ".pub"))
		if err != nil {
			e.Fatal(err)
		}
		public[i] = string(data)
	}
	programs := map[string]string{"ssh": "", "sshd": ""}
	for name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			e.Fatal(err)
		}
		programs[name] = path
	}
	h.Put(at("authorized"), public[1])
	h.Put(at("known"), "engine.test "+public[0])
	h.Put(at("sshd_config"), "HostKey "+at("host")+"\nAuthorizedKeysFile "+at("authorized")+"\nPermitRootLogin yes\nStrictModes no\nUsePAM no\nPidFile none\n"+
		"SetEnv DOCKER_HOST="+e.Address+"\n")
	// Its directory for unprivileged processes is its own.
	h.Put(at("serve"), "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec "+programs["sshd"]+" -i -f "+at("sshd_config")+"\n")
	h.Put(at("config"), "Host *\n\tProxyCommand unshare --mount sh "+at("serve")+"\n\tUserKnownHostsFile "+at("known")+"\n\tStrictHostKeyChecking yes\n\tIdentityFile "+at("user")+"\n\tIdentityAgent none\n")
	wrapper := filepath.Join(h.Dir, "bin/ssh")
	h.Put(wrapper, "#!/bin/sh\nexec "+programs["ssh"]+" -F "+at("config")+` "$@"`+"\n")
	if err := os.Chmod(wrapper, 0o755); err != nil {
		e.Fatal(err)
	}
	return at("known")
}

// An engine that maps ids (userns-remap) shifts its containers' users, and the
// inside is the same.
func TestRemappedEngine(t *testing.T) {
	whole(t)
	needRoot(t, engine.DockerNeeds...)
	mapped, err := engine.Subordinate()
	if err != nil {
		t.Skip(err)
	}
	e := docker(t, map[string]any{"userns-remap": mapped.Username})
	e.life(e.host(engine.Shell), "remapped")
}
