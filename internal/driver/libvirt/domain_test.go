package libvirt

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A domain has what the driver says: ports, two disks, and no way to the network
// or a directory of the host.
func TestDomain(t *testing.T) {
	t.Parallel()
	d := domain{Name: "litterbox-1", UUID: newUUID(), Sandbox: `a'b<c>&"d`, Type: "qemu", Memory: 512, CPUs: 2, Image: "/i'&<x>", Root: rootOf("/i'&<x>"), Dir: "/d", Ports: make([]string, Machine{}.ports()), Idle: 60}
	text, err := d.text()
	if err != nil {
		t.Fatal(err)
	}
	var elements []string
	values := map[string]bool{}
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements = append(elements, token.Name.Local)
			for _, attribute := range token.Attr {
				values[attribute.Value] = true
			}
		case xml.CharData:
			values[strings.TrimSpace(string(token))] = true
		}
	}
	count := map[string]int{}
	for _, element := range elements {
		count[element]++
	}
	for _, element := range []string{"interface", "filesystem", "hostdev", "redirdev", "graphics", "shmem", "vsock"} {
		if count[element] > 0 {
			t.Errorf("the domain has an element %s", element)
		}
	}
	if count["disk"] != 2 || count["channel"] != len(d.Ports) || count["readonly"] != 1 {
		t.Errorf("it has %v", count)
	}
	for _, value := range []string{d.Sandbox, d.Image + "/vmlinuz", d.Image + "/root.squashfs", "/d/0.sock"} {
		if !values[value] {
			t.Errorf("it has no value %q:\n%s", value, text)
		}
	}
}

func TestDomainInADeepDirectory(t *testing.T) {
	t.Parallel()
	d := domain{UUID: newUUID(), Dir: "/" + strings.Repeat("d", 120), Ports: make([]string, 1)}
	if _, err := d.text(); err == nil || !strings.Contains(err.Error(), "107 bytes") {
		t.Errorf("a socket's path that is too long: %v", err)
	}
}

// QEMU's own tool accepts the overlay as one, and it is never put over another.
func TestOverlay(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("qemu-img is not installed")
	}
	dir := t.TempDir()
	backing, overlay := filepath.Join(dir, "backing"), filepath.Join(dir, "overlay")
	run := func(argv ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), tool, argv...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	run("create", "-q", "-f", "qcow2", backing, "64G")
	if err := overlayOn(overlay, backing); err != nil {
		t.Fatal(err)
	}
	run("check", "-q", overlay)
	info := run("info", overlay)
	for _, want := range []string{"virtual size: 64 GiB", "backing file: " + backing, "backing file format: qcow2"} {
		if !strings.Contains(info, want) {
			t.Errorf("no %q in\n%s", want, info)
		}
	}
	if out, err := exec.CommandContext(t.Context(), tool, "compare", backing, overlay).CombinedOutput(); err != nil {
		t.Errorf("an empty overlay differs: %v\n%s", err, out)
	}
	if err := overlayOn(overlay, backing); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second overlay at the same path: %v", err)
	}
}
