package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestApk has the real apk of an image install signed packages: as a human asks for
// it, as the configuration does, and as a program inside does. No distribution that
// the tests use has apk: LITTERBOX_TEST_APK is one that is linked statically, built
// from https://gitlab.alpinelinux.org/alpine/apk-tools.
func TestApk(t *testing.T) {
	apk, busybox := os.Getenv("LITTERBOX_TEST_APK"), "/bin/busybox"
	if apk == "" {
		t.Skip("it needs the apk of Alpine, linked statically: make test-packages APK=/path/to/apk.static")
	}
	if err := exec.Command(busybox, "true").Run(); err != nil {
		t.Skipf("it needs Debian's busybox-static: %v", err)
	}
	dir := t.TempDir()
	root, repo := filepath.Join(dir, "root"), filepath.Join(dir, "root/srv/repo")
	shell := func(script string) string {
		t.Helper()
		command := exec.Command("/bin/sh", "-euc", script)
		command.Dir = dir
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	shell("mkdir -p root/bin root/sbin root/usr/bin root/usr/sbin root/etc/apk/keys root/dev root/proc root/sys root/tmp root/run root/var/lib root/root\n" +
		"cp " + busybox + " root/bin/busybox; for name in $(" + busybox + " --list | grep -vx busybox); do ln -sf busybox root/bin/$name; done\n" +
		"cp '" + apk + "' root/sbin/apk; printf 'root:x:0:0:root:/root:/bin/sh\\n' >root/etc/passwd; printf 'root:x:0:\\n' >root/etc/group")
	arch := shell("root/sbin/apk --print-arch")
	if err := os.MkdirAll(filepath.Join(repo, arch), 0o755); err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(root, "etc/apk/keys/own.rsa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
	write(filepath.Join(root, "etc/apk/repositories"), []byte("/srv/repo\n"))
	one := apkOf(t, key, arch, "hello-box", "hello-lib", map[string]string{"usr/bin/hello-box": "#!/bin/sh\necho $(cat /usr/share/hello)\n"},
		"#!/bin/sh\nset -e\necho hello:x:100:101::/:/bin/false >>/etc/passwd\nmkdir -p /var/lib/hello-box\nchown hello /var/lib/hello-box\necho began >/var/lib/hello-box/state\n")
	write(filepath.Join(repo, arch, "hello-box-1.0-r0.apk"), one)
	write(filepath.Join(repo, arch, "hello-lib-1.0-r0.apk"), apkOf(t, key, arch, "hello-lib", "", map[string]string{"usr/share/hello": "hello\n"}, ""))
	shell("root/sbin/apk --root root --initdb --usermode add 2>/dev/null || root/sbin/apk --root root --initdb add\n" +
		"cd root/srv/repo/" + arch + " && ../../../sbin/apk index --quiet --allow-untrusted -o index *.apk")
	index, err := os.ReadFile(filepath.Join(repo, arch, "index"))
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(repo, arch, "APKINDEX.tar.gz"), append(signatureOf(t, key, index), index...))
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "strange.apk"), apkOf(t, stranger, arch, "strange", "", map[string]string{"usr/bin/strange": "#!/bin/sh\n"}, ""))

	h := built.New(t)
	configure(h, root)
	check := func(sandbox string) {
		t.Helper()
		if got := inside(h, sandbox, "hello-box; cat /var/lib/hello-box/state; grep -c ^hello: /etc/passwd"); got != "hello\nbegan\n1" {
			t.Errorf("in %s: %q", sandbox, got)
		}
	}
	h.Must("create", "human")
	h.Must("install", "human", "hello-box")
	check("human")
	h.Must("fork", "human", "copy")
	check("copy")
	h.Must("create", "program")
	inside(h, "program", "apk add --no-cache hello-box")
	check("program")
	h.Must("create", "file")
	h.Must("install", "file", filepath.Join(repo, arch, "hello-box-1.0-r0.apk"))
	check("file")
	if got := h.Litterbox("install", "file", filepath.Join(dir, "strange.apk")); got.Code == 0 || !strings.Contains(got.Stdout+got.Stderr, " signature") {
		t.Errorf("a file of a stranger: %+v", got)
	}
	if got := h.Litterbox("install", "human", "no-such-package"); got.Code == 0 || !strings.Contains(got.Stderr, "apk exited") {
		t.Errorf("a package that is not there: %+v", got)
	}
	config := filepath.Join(h.Home, ".config/litterbox/config.toml")
	content, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	h.Put(config, string(content)+"container.packages = [\"hello-box\"]\n")
	h.Must("create", "configured")
	check("configured")
}

// apkOf makes a package of apk's format 2 (apk-package(5)): a signature, the control
// segment and the data, each a tar archive in a gzip stream of its own.
func apkOf(t *testing.T, key *rsa.PrivateKey, arch, name, needs string, files map[string]string, script string) []byte {
	t.Helper()
	size, data := 0, []member{}
	for _, path := range []string{"usr", "usr/bin", "usr/share"} {
		data = append(data, member{name: path + "/", mode: 0o755})
	}
	for path, content := range files {
		size += len(content)
		sum := sha1.Sum([]byte(content))
		data = append(data, member{name: path, mode: 0o755, content: content, sum: hex.EncodeToString(sum[:])})
	}
	packed := segment(t, data, true)
	hash := sha256.Sum256(packed)
	info := fmt.Sprintf("pkgname = %s\npkgver = 1.0-r0\npkgdesc = says hello\nurl = https://example.com\nbuilddate = 1700000000\npackager = a test\nsize = %d\narch = %s\norigin = %s\nlicense = MIT\n",
		name, size, arch, name)
	if needs != "" {
		info += "depend = " + needs + "\n"
	}
	control := []member{{name: ".PKGINFO", mode: 0o644, content: info + "datahash = " + hex.EncodeToString(hash[:]) + "\n"}}
	if script != "" {
		control = append(control, member{name: ".post-install", mode: 0o755, content: script})
	}
	about := segment(t, control, false)
	return append(append(signatureOf(t, key, about), about...), packed...)
}

// signatureOf is the segment that signs another one.
func signatureOf(t *testing.T, key *rsa.PrivateKey, signed []byte) []byte {
	t.Helper()
	hash := sha1.Sum(signed)
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA1, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return segment(t, []member{{name: ".SIGN.RSA.own.rsa.pub", mode: 0o644, content: string(signature)}}, false)
}

type member struct {
	name, content, sum string // with the SHA-1 that apk keeps of a file
	mode               int64
}

// segment is a tar archive in a gzip stream; only the last one of a package ends the
// archive.
func segment(t *testing.T, entries []member, last bool) []byte {
	t.Helper()
	var packed bytes.Buffer
	stream := gzip.NewWriter(&packed)
	archive := tar.NewWriter(stream)
	for _, one := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: one.name, Mode: one.mode, Size: int64(len(one.content)), Uname: "root", Gname: "root"}
		if strings.HasSuffix(one.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if one.sum != "" {
			header.PAXRecords = map[string]string{"APK-TOOLS.checksum.SHA1": one.sum}
		}
		err := archive.WriteHeader(header)
		if err == nil {
			_, err = archive.Write([]byte(one.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	end := archive.Flush
	if last {
		end = archive.Close
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
