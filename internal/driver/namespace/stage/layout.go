package stage

// systemDirs are the host's directories that are read-only inside, with the
// toolchains and libraries of the host's userland. Links among them (a merged
// /usr) are copied as links; directories the host lacks are left out.
var systemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32",
	"/opt", "/nix", "/gnu",
}

// sysfsParts are the few parts of /sys that ordinary programs read (nproc,
// the JVM, OpenMP). The rest of /sys does not exist inside.
var sysfsParts = []string{"/sys/devices/system/cpu", "/sys/devices/system/node"}

// devices are the nodes of a minimal /dev, bound from the host.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// deviceLinks complete /dev.
var deviceLinks = map[string]string{
	"fd":     "/proc/self/fd",
	"stdin":  "/proc/self/fd/0",
	"stdout": "/proc/self/fd/1",
	"stderr": "/proc/self/fd/2",
	"ptmx":   "pts/ptmx",
	"core":   "/proc/kcore",
}

// procMasked are files and directories of /proc that reveal too much about the
// host or act on it; procReadOnly could be written by a lucky uid. The lists
// follow the OCI runtime's defaults (opencontainers/runtime-spec, config-linux).
var (
	procMasked = []string{
		"acpi", "asound", "interrupts", "kcore", "keys", "key-users", "kallsyms", "kmsg", "latency_stats", "sched_debug",
		"scsi", "sysvipc", "timer_list", "timer_stats", "vmallocinfo", "kpagecount", "kpageflags", "kpagecgroup", "dynamic_debug",
	}
	procReadOnly = []string{"bus", "fs", "irq", "sys", "sysrq-trigger", "driver", "tty"}
)
