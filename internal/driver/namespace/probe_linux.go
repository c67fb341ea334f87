package namespace

import (
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
)

// probeUDP tries the means to carry datagrams: without them the kernel answers
// inside that nothing listens, no matter what is allowed.
func probeUDP() Finding {
	found := Finding{Name: "UDP", OK: true, Found: "rules for UDP can be enforced (TPROXY)"}
	if err := try(stage.VerbUDP); err != nil {
		found.OK, found.Found = false, "no UDP leaves a sandbox, whatever is allowed, because TPROXY is missing: "+err.Error()
		found.Mend = "sudo modprobe -a nft_tproxy nf_tproxy_ipv4 nf_tproxy_ipv6"
	}
	return found
}

// probeFilters tries the system call filters. Only one filter of a process may
// ask a listener, so a container's filter that does prevents ours.
func probeFilters() Finding {
	found := Finding{Name: "seccomp", Needed: true, OK: true, Found: "system calls are filtered, and renames watched"}
	if err := tryPlain(stage.VerbFilter); err != nil {
		found.OK, found.Found = false, "system calls cannot be filtered: "+err.Error()
		found.Mend = "boot a kernel with CONFIG_SECCOMP_FILTER, or start litterbox where no listener filters its own system calls"
	}
	return found
}
