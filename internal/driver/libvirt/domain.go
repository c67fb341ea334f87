package libvirt

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/litterbox-sandbox/litterbox/internal/outpost/boot"
)

// Namespace is that of our elements in a domain's metadata.
const Namespace = "https://litterbox/1"

// domain holds what a domain is made of.
type domain struct {
	Name, UUID, Sandbox string
	Type                string // kvm, or qemu where the processor is emulated
	Memory, CPUs        int    // MiB
	Image, Dir          string
	Root                string // the file of the image with the userland
	Ports               []string
	Idle                int // seconds; 0 and less is never
	RootSerial          string
	StateSerial         string
	Prefix              string
	IdleOption          string
	RootFormat          string
}

// A domain has no network card, and no host directory is mounted in it: its
// only ways out are the ports.
const domainText = `<domain type='{{.Type}}'>
  <name>{{x .Name}}</name>
  <uuid>{{.UUID}}</uuid>
  <metadata><lb:sandbox xmlns:lb='` + Namespace + `' id='{{x .Sandbox}}'/></metadata>
  <memory unit='MiB'>{{.Memory}}</memory>
  <vcpu>{{.CPUs}}</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>{{x .Image}}/vmlinuz</kernel>
    <initrd>{{x .Image}}/initrd.gz</initrd>
    <cmdline>console=ttyS0 quiet panic=-1{{if gt .Idle 0}} {{.IdleOption}}{{.Idle}}{{end}}</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='{{if eq .Type "kvm"}}host-passthrough{{else}}maximum{{end}}'/>
  <clock offset='utc'/>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='{{.RootFormat}}'/>
      <source file='{{x .Image}}/{{.Root}}'/>
      <target dev='vda' bus='virtio'/>
      <readonly/>
      <serial>{{.RootSerial}}</serial>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' discard='unmap'/>
      <source file='{{x .Dir}}/state.qcow2'/>
      <target dev='vdb' bus='virtio'/>
      <serial>{{.StateSerial}}</serial>
    </disk>
    <controller type='usb' model='none'/>
    <serial type='file'>
      <source path='{{x .Dir}}/console.log'/>
      <target port='0'/>
    </serial>
{{- range $i, $path := .Ports}}
    <channel type='unix'>
      <source mode='bind' path='{{x $path}}'/>
      <target type='virtio' name='{{$.Prefix}}{{$i}}'/>
    </channel>
{{- end}}
    <memballoon model='virtio'><stats period='5'/></memballoon>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
  </devices>
</domain>
`

// text is the domain as libvirt reads it.
func (d domain) text() (string, error) {
	d.RootSerial, d.StateSerial, d.Prefix, d.IdleOption = boot.RootDisk, boot.StateDisk, boot.PortPrefix, boot.IdleOption
	if d.RootFormat = "raw"; d.Root == rootQcow2 {
		d.RootFormat = "qcow2"
	}
	for i := range d.Ports {
		if d.Ports[i] = socketOf(d.Dir, i); len(d.Ports[i]) > maxSocket {
			return "", fmt.Errorf("the path %s is longer than the %d bytes that a socket's may have", d.Ports[i], maxSocket)
		}
	}
	escape := func(text string) (string, error) {
		var b bytes.Buffer
		err := xml.EscapeText(&b, []byte(text))
		return b.String(), err
	}
	parsed, err := template.New("domain").Funcs(template.FuncMap{"x": escape}).Parse(domainText)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = parsed.Execute(&b, d)
	return b.String(), err
}

// The files with the userland: what was built, or a disk of the user's.
const (
	rootBuilt = "root.squashfs"
	rootQcow2 = "root.qcow2"
	rootRaw   = "root.raw"
)

// rootOf is the one that an image has.
func rootOf(image string) string {
	for _, name := range []string{rootQcow2, rootRaw} {
		if _, err := os.Stat(filepath.Join(image, name)); err == nil {
			return name
		}
	}
	return rootBuilt
}

// builtOf is the image whose kernel another one has, or the image itself.
func builtOf(image string) string {
	if built, err := filepath.EvalSymlinks(filepath.Join(image, "built")); err == nil {
		return built
	}
	return image
}

// maxSocket is the longest path of a socket that the kernel takes (unix(7)),
// without the zero at its end.
const maxSocket = 107

func socketOf(dir string, port int) string { return filepath.Join(dir, fmt.Sprintf("%d.sock", port)) }
