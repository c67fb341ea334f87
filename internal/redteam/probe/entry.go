package probe

import "strings"

// NoEntry reports whether the end of `foreign int80` where nothing is in its way says
// that the kernel has no such entry (CONFIG_IA32_EMULATION, ia32_emulation=off): it
// answers the instruction with SIGSEGV, which Go reports, as it is not in Go's code,
// and turns into an exit code.
func NoEntry(code int, stderr string) bool {
	return code == 2 && strings.Contains(stderr, "SIGSEGV") || code == 128+11
}

// WhyNoEntry is the reason to give then.
const WhyNoEntry = "this kernel has no 32-bit entry (int 0x80 ends the program)"
