package libvirt

import (
	"strings"
	"testing"
)

// A copy's description of a snapshot names nothing of the original, in either kind of
// quotes that libvirt writes, and is the same otherwise.
func TestRenamed(t *testing.T) {
	t.Parallel()
	from := original{UUID: newUUID(), Dir: "/var/lib/litterbox/machines/one", Sandbox: "fix-1a2b"}
	to := original{UUID: newUUID(), Dir: "/home/a/.local/state/litterbox/sandboxes/try-3c4d/vm", Sandbox: "try-3c4d"}
	text := func(o original) string {
		return `<domainsnapshot><name>1a2b</name><domain type='qemu'><name>` + nameOf(o.UUID) + `</name><uuid>` + o.UUID + `</uuid>
<metadata><lb:sandbox xmlns:lb="https://litterbox/1" id="` + o.Sandbox + `"/><lb:sandbox id='` + o.Sandbox + `'/></metadata>
<type arch='x86_64' machine='pc-q35-7.2'>hvm</type><source file='` + o.Dir + `/state.qcow2'/><source mode='bind' path='` + o.Dir + `/0.sock'/>
<label>libvirt-` + o.UUID + `</label></domain></domainsnapshot>`
	}
	got := from.renamed(text(from), to)
	if got != text(to) {
		t.Errorf("it is\n%s", got)
	}
	for _, trace := range []string{from.UUID, nameOf(from.UUID), from.Dir, from.Sandbox} {
		if strings.Contains(got, trace) {
			t.Errorf("it names %q", trace)
		}
	}
}
