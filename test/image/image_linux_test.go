// Package image drives the true program with root file systems that are not the
// host's: images made here by another implementation, in a layout, in an
// archive and in a registry on loopback, and plain directories. Their programs
// are busybox, which needs nothing else.
package image_test

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// built is set by TestMain before any test.
var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// configure writes the human's own configuration.
func configure(h *program.Host, baseImage string) {
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "container.base-image = \""+baseImage+"\"\n")
}

// inside runs a script that must succeed, and returns what it prints.
func inside(h *program.Host, name, script string) string {
	h.Helper()
	got := h.Inside(name, "/bin/sh", "-c", script)
	if got.Code != 0 {
		h.Fatalf("inside, %q exited %d: %s%s", script, got.Code, got.Stdout, got.Stderr)
	}
	return strings.TrimSuffix(got.Stdout, "\n")
}

func TestImageFromRegistry(t *testing.T) {
	h := built.New(t)
	img := imageOf(t, v1.Config{
		Env: []string{"PATH=/opt/tool:/bin", "FROM_IMAGE=1", "HOME=/nowhere", "OVER=image"}, WorkingDir: "/srv/app", User: "worker:staff",
	}, programs(t), layer(t,
		entry{name: "opt/tool/hello", content: "#!/bin/sh\necho hello from $0 with $FROM_IMAGE $OVER\n"},
		entry{name: "etc/passwd", content: "root:x:0:0:root:/root:/bin/sh\ndaemon:x:2:2::/:/bin/false\nworker:x:77:77::/home/worker:/bin/sh\n"},
		entry{name: "root/secret", content: "readable for the one user that there is", mode: 0o600},
		entry{name: "etc/resolv.conf", link: "/run/elsewhere"},
	))
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/my/image:1"
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
	configure(h, reference)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "container.env = { OVER = \"ours\" }\n")
	h.Must("create", "box")

	for script, want := range map[string]string{
		"hello":                              "hello from /opt/tool/hello with 1 ours",
		"echo $HOME $USER $LANG":             h.Home + " worker C.UTF-8",
		"id -un; grep -c worker /etc/passwd": "worker\n1",
		"grep daemon /etc/passwd":            "daemon:x:2:2::/:/bin/false",
		"cat /etc/resolv.conf | head -n 1":   "nameserver 100.64.0.1",
		"ls -d /srv/app":                     "/srv/app",
		"cat /root/secret":                   "readable for the one user that there is",
		"pwd; cat README":                    h.Repo + "\nhello",
		"ls /usr 2>/dev/null; ls /opt":       "tool",
		"for f in / /bin /etc /opt/tool /root /srv/app; do touch $f/x 2>/dev/null && echo WRITABLE $f; done; true": "",
		"for f in /tmp /var/tmp /run /dev/shm $HOME .; do touch $f/x || echo DENIED $f; done":                      "",
		"cat /proc/self/status | grep -c Name:":                                                                    "1",
	} {
		if got := inside(h, "box", script); got != want {
			t.Errorf("%q prints %q, want %q", script, got, want)
		}
	}
	h.Must("exec", "box", "--", "sh", "-c", "echo new > made")
	if got := h.Git("show", "box:made"); got != "new" {
		t.Errorf("the commit holds %q", got)
	}

	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got := h.Must("status", "box"); !strings.Contains(got, reference+" ("+digest.String()+")") {
		t.Errorf("status does not show the image with its digest:\n%s", got)
	}
	var status struct {
		BaseImage struct{ Reference, Digest string } `json:"base_image"`
	}
	if err := json.Unmarshal([]byte(h.Must("status", "box", "--json")), &status); err != nil || status.BaseImage.Digest != digest.String() {
		t.Errorf("status --json shows %+v (%v)", status, err)
	}

	// A second one needs no registry, shares the layers, and the first goes on
	// with its image whatever the configuration says later.
	server.Close()
	h.Must("create", "second")
	if got := inside(h, "second", "hello"); !strings.HasPrefix(got, "hello from") {
		t.Errorf("the second sandbox says %q", got)
	}
	layers, err := filepath.Glob(filepath.Join(h.State, "litterbox/images/layers/*[^k]"))
	if err != nil || len(layers) != 2 {
		t.Errorf("two sandboxes of an image with two layers have %q on disk", layers)
	}
	configure(h, "host")
	h.Must("stop", "box")
	if got := inside(h, "box", "hello"); !strings.HasPrefix(got, "hello from") {
		t.Errorf("after a restart the sandbox says %q", got)
	}
}

// One layer hides what another has, and many fit into one mount.
func TestLayersHideEachOther(t *testing.T) {
	h := built.New(t)
	layers := []v1.Layer{
		programs(t),
		layer(t, entry{name: "data/a"}, entry{name: "data/b"}, entry{name: "opaque/old"}, entry{name: "tree/x/y"}, entry{name: "turns"}),
		layer(t, entry{name: "data/.wh.a"}, entry{name: "opaque/.wh..wh..opq"}, entry{name: "opaque/new"}, entry{name: ".wh.tree"}, entry{name: ".wh.turns"}),
		layer(t, entry{name: "turns/into/a/directory"}),
	}
	for i := range 123 { // 128 in all, the most that an image may have
		layers = append(layers, layer(t, entry{name: fmt.Sprintf("many/%03d", i)}))
	}
	layers = append(layers, layers[4]) // the same twice is not twice there
	configure(h, "oci:"+writeLayout(t, imageOf(t, v1.Config{}, layers...)))
	h.Must("create", "box")
	got := inside(h, "box", "find /data /opaque /tree /turns 2>/dev/null; ls /many | grep -c .")
	if want := "/data\n/data/b\n/opaque\n/opaque/new\n/turns\n/turns/into\n/turns/into/a\n/turns/into/a/directory\n123"; sorted(got) != sorted(want) {
		t.Errorf("inside there is\n%s\nwant\n%s", got, want)
	}
	configure(h, "oci:"+writeLayout(t, imageOf(t, v1.Config{}, append(layers, layers[4])...)))
	if got := h.Litterbox("create", "more"); got.Code == 0 || !strings.Contains(got.Stderr, "it has 129 layers, 128 can be mounted") {
		t.Errorf("one layer more: %+v", got)
	}
}

func sorted(lines string) string {
	parts := strings.Split(lines, "\n")
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// Files that an image puts where a sandbox mounts lead nowhere.
func TestHostileImage(t *testing.T) {
	h := built.New(t)
	canary := filepath.Join(h.Dir, "canary")
	h.Put(filepath.Join(canary, "etc/passwd"), "secret\n")
	links := []entry{}
	for _, dir := range []string{"etc", "proc", "sys", "dev", "run", "tmp", "var", "home", "root", "srv"} {
		links = append(links, entry{name: dir, link: canary + "/etc"})
	}
	if first, _, _ := strings.Cut(strings.TrimPrefix(h.Repo, "/"), "/"); first != "tmp" {
		links = append(links, entry{name: first, link: canary})
	}
	img := imageOf(t, v1.Config{WorkingDir: "/srv/../../../.." + canary + "/made", User: "../../x:y"}, layer(t,
		append(links,
			entry{name: "bin/busybox", content: string(busybox(t))}, entry{name: "bin/sh", link: "busybox"}, entry{name: "bin/cat", link: "busybox"},
			entry{name: "bin/find", link: "busybox"}, entry{name: "bin/su", content: "x", mode: 0o4755},
			entry{name: "sda", kind: tar.TypeBlock}, entry{name: "mem", kind: tar.TypeChar},
		)...))
	configure(h, "oci:"+writeLayout(t, img))
	h.Must("create", "box")
	got := h.Inside("box", "/bin/sh", "-c", "cat /etc/passwd /proc/self/comm; echo x > /dev/null; echo tmp > /tmp/x; cat /tmp/x; find / -xdev -perm -4000; find / -xdev -type b")
	if strings.Contains(got.Stdout, "secret") || !strings.HasSuffix(got.Stdout, "\ncat\ntmp\n") {
		t.Errorf("inside there is %q (%s)", got.Stdout, got.Stderr)
	}
	var found []string
	_ = filepath.WalkDir(canary, func(path string, _ os.DirEntry, _ error) error {
		found = append(found, strings.TrimPrefix(path, canary))
		return nil
	})
	if want := []string{"", "/etc", "/etc/passwd"}; !slices.Equal(found, want) {
		t.Errorf("on the host there is %q, want %q", found, want)
	}
}

// Layers that no sandbox uses anymore are removed when the human says so, and
// no others.
func TestPrune(t *testing.T) {
	h := built.New(t)
	shared := programs(t)
	layers := func() []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(h.State, "litterbox/images/layers/*[^k]"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for i, name := range []string{"stays", "goes"} {
		configure(h, "oci:"+writeLayout(t, imageOf(t, v1.Config{}, shared, layer(t, entry{name: name, content: fmt.Sprint(i)}))))
		h.Must("create", name)
	}
	h.Must("delete", "--force", "goes")
	if got := h.Must("prune", "--all", "--yes"); len(layers()) != 3 {
		t.Errorf("layers that were just in use are gone: %s", got)
	}
	old := time.Now().Add(-time.Hour)
	for _, layer := range layers() {
		if err := os.Chtimes(layer+".lock", old, old); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.Must("df", "--all"); !strings.Contains(got, "layers of images") {
		t.Errorf("df does not count images:\n%s", got)
	}
	if got := h.Must("prune", "--all", "--yes"); len(layers()) != 2 {
		t.Errorf("%q are left after\n%s", layers(), got)
	}
	h.Must("stop", "stays")
	if got := inside(h, "stays", "cat /stays"); got != "0" {
		t.Errorf("the sandbox that stays has %q", got)
	}
}

// A directory is used in place; a repository's needs trust, and must not lead
// elsewhere.
func TestDirectory(t *testing.T) {
	h := built.New(t)
	rootfs := filepath.Join(h.Repo, "rootfs")
	h.Put(filepath.Join(rootfs, "bin/busybox"), string(busybox(t)))
	h.Put(filepath.Join(rootfs, "only-here"), "yes\n")
	if err := os.Chmod(filepath.Join(rootfs, "bin/busybox"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, applet := range []string{"sh", "cat", "ls"} {
		if err := os.Symlink("busybox", filepath.Join(rootfs, "bin", applet)); err != nil {
			t.Fatal(err)
		}
	}
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "container.base-image = \"./rootfs\"\n")

	got := h.Litterbox("create", "untrusted")
	if got.Code != 7 || !strings.Contains(got.Stderr, "container.base-image: ./rootfs") || !strings.Contains(got.Stderr, "  try: litterbox trust") {
		t.Errorf("before trust, create says %q %q", got.Stdout, got.Stderr)
	}
	if got := h.Inside("untrusted", "/bin/cat", "/only-here"); got.Code == 0 {
		t.Error("a repository's base image counts before it is trusted")
	}
	if got := h.Must("trust"); !strings.Contains(got, "container.base-image: ./rootfs") {
		t.Errorf("trust does not say what it grants: %q", got)
	}
	h.Must("create", "trusted")
	if got := inside(h, "trusted", "cat /only-here; ls /usr/bin 2>/dev/null; true"); got != "yes" {
		t.Errorf("after trust there is %q", got)
	}
	if got := h.Must("status", "trusted"); !strings.Contains(got, rootfs) {
		t.Errorf("status does not show the directory:\n%s", got)
	}

	// The file is trusted, its path is not.
	if err := os.Rename(rootfs, filepath.Join(h.Dir, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.Home, rootfs); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"create", "led-astray"}, {"create", "again"}} {
		if got := h.Litterbox(command...); got.Code == 0 || !strings.Contains(got.Stderr, "leads out of the repository") {
			t.Errorf("litterbox %q with a link in the place of the directory: %d %s", command, got.Code, got.Stderr)
		}
	}
	configure(h, "/")
	if err := os.Remove(filepath.Join(h.Repo, ".litterbox.toml")); err != nil {
		t.Fatal(err)
	}
	if got := h.Litterbox("create", "whole-host"); got.Code == 0 || !strings.Contains(got.Stderr, "would be visible") {
		t.Errorf("the whole host as a base image: %d %s", got.Code, got.Stderr)
	}
}

// An image without certificates gets the host's; one that has some keeps them.
func TestCertificates(t *testing.T) {
	h := built.New(t)
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	host, err := os.ReadFile(bundle)
	if err != nil {
		t.Skipf("this machine keeps its certificates elsewhere: %v", err)
	}
	configure(h, "oci:"+writeLayout(t, imageOf(t, v1.Config{}, programs(t))))
	h.Must("create", "without")
	if got := h.Inside("without", "/bin/cat", bundle).Stdout; got != string(host) {
		t.Errorf("an image without certificates has %d bytes of them, the host %d", len(got), len(host))
	}
	configure(h, "oci:"+writeLayout(t, imageOf(t, v1.Config{}, programs(t), layer(t, entry{name: "etc/ssl/cert.pem", content: "the image's own\n"}))))
	h.Must("create", "with")
	if got := inside(h, "with", "cat /etc/ssl/cert.pem; ls /etc/ssl"); got != "the image's own\ncert.pem" {
		t.Errorf("an image with certificates has %q", got)
	}
}
