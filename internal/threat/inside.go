package threat

// Rows about what can be reached from inside: files, the kernel, processes, secrets.

const (
	assemble = "internal/driver/namespace/stage/assemble_linux.go"
	filter   = "internal/driver/seccomp/denied.go"
	walls    = "internal/driver/landlock/confine/walls_linux.go"
)

// everywhere is for attacks in any place.
var everywhere = []Place{Copy, Image, Degraded, Machine}

func fileRows() []Attack {
	return rows(Files,
		Attack{Name: "read the host's files", Escape: "keys, tokens and other projects of the human are the agent's", Defence: list(assemble, walls), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "write the host's files", Escape: "code of the agent's runs in the human's next shell or git command", Defence: list(assemble, walls), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "write system directories", Escape: "a changed program runs with the human's rights at the next command", Defence: list(assemble), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "hold the host's files without writing", Escape: "a lease stops any program that opens the file on the host, flags make it immutable: both pass a read-only mount", Defence: list("internal/driver/seccomp/requests.go"), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "open kernel switches for writing", Escape: "core_pattern, sysrq and uevent_helper run programs, or end the machine, as root; devices are the disk itself", Defence: list(assemble), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "read kernel secrets", Escape: "kernel addresses and logs that make exploits work", Defence: list(assemble), Tried: list(Attacks), Places: []Place{Copy, Image, Machine}},
		Attack{Name: "mount over or remount", Escape: "a read-only mount that is only read-only from inside (CVE-2026-46695)", Defence: list(filter), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "find a device", Escape: "a disk or the memory of the host, as a file", Defence: list(assemble), Tried: list(Attacks, Posture), Places: []Place{Copy, Image, Machine}, Looks: list("Devices")},
		Attack{Name: "leave set-user-id files", Escape: "a file in the upper directory lies on the host, where it runs as its owner", Defence: list("internal/driver/seccomp/rules.go"), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "leave set-group-id files", Escape: "the guest sets that bit on directories on request, and could be led to a file", Defence: list("internal/guest/overlay/setgroup_linux.go"), Tried: list(Attacks, "test/attack: TestSetGroupDegraded"), Places: []Place{Copy}},
		Attack{Name: "write a shared layer through a hard link", Escape: "every sandbox of that tree, and every later one, gets the changed file", Defence: list(assemble), Tried: list(Attacks), Places: everywhere},
		Attack{Name: "plant overlay attributes", Escape: "redirect_dir and metacopy make the overlay, or the reader of the upper directory, look elsewhere", Defence: list(assemble, "internal/workspace/local/changes_linux.go"), Tried: list(Attacks), Places: []Place{Image}},
		Attack{Name: "write below the overlay", Escape: "the reader of the upper directory is led astray past the overlay, or a program of ours is replaced", Defence: list("internal/driver/namespace/stage/monitor_linux.go"), Tried: list(Attacks)},
		Attack{Name: "plant what a frozen layer would mean", Escape: "a snapshot or a fork brings a device, a set-id bit, an overlay's attribute, a whiteout of the sandbox's own making or a path out of its layer", Defence: list("internal/frozen/copy_linux.go"), Tried: list(Attacks), Places: []Place{Copy}},
		Attack{Name: "plant what a golden would mean", Escape: "a golden brings a device, a set-id bit, an overlay's attribute, a whiteout or a path out of its layer to every sandbox that begins with it", Defence: list("internal/frozen/draft_linux.go"), Tried: list(Attacks)},
		Attack{Name: "install a hostile package", Escape: "its scripts run as root where apt runs: they reach the project, HOME, the host's files or a network that no source of packages is in, or leave a set-id program or a device to the sandbox", Defence: list("internal/driver/namespace/stage/system_linux.go", "internal/driver/seccomp/pretended.go"), Tried: list(Attacks)},
		Attack{Name: "ask the keeper to install", Escape: "a name that is an option of apt's or of litterbox's runs a program on the host, a file's name brings a file of the host, or tells that it is there; another sandbox gets packages, or the disk fills with layers", Defence: list("internal/keeper/installs.go", "internal/engine/install.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded, Machine}},
		Attack{Name: "plant", Escape: "the next start follows a link in the place of a mount point, and mounts or makes directories on the host (CVE-2021-30465)", Defence: list("internal/driver/namespace/stage/mountpoint_linux.go"), Tried: list(Attacks), Places: []Place{Copy, Image}},
		Attack{Name: "plant links in the place of what the host writes", Escape: "a control file that is a link when the host writes it again", Defence: list("internal/hostile/open_linux.go"), Tried: list(Attacks), Places: everywhere},
		Attack{Name: "change, signal, trace and reach what the degraded tier shares", Escape: "modes, owners and limits of files and processes outside, sockets, terminals and shared memory of the human", Defence: list(walls, "internal/driver/seccomp/shared.go"), Tried: list("test/attack: TestDegradedTier")},
		Attack{Name: "find more of the host's mounts", Escape: "a mount, or a directory of the root, that was not meant to be there, or that can be written", Defence: list(assemble), Tried: list(Posture), Looks: list("Mounts", "Root", "Directory")},
	)
}

func kernelRows() []Attack {
	return rows(Kernel,
		Attack{Name: "enter new namespaces", Escape: "a user namespace hands out capabilities over kernel code that expects root", Defence: list(filter), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "make forbidden system calls", Escape: "mounts, namespaces, io_uring, bpf, perf, keyrings, raw sockets, TIOCSTI, leases and flags: young or powerful kernel code", Defence: list(filter), Tried: list(Redteam, Attacks, "internal/driver/seccomp: TestListing"), Places: []Place{Copy, Image, Machine}},
		Attack{Name: "enter the kernel by another door", Escape: "a filter that gives foreign calls its default verdict: unshare(CLONE_NEWUSER) went through int 0x80", Defence: list("internal/driver/seccomp/compile.go"), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "hold more rights than an ordinary program", Escape: "a capability, a namespace of the parent's, another user's id, no filter, a privilege to gain", Defence: list("internal/driver/namespace/stage/privileges_linux.go"), Tried: list(Posture), Looks: list("IDs", "Capabilities", "Locks", "Umask", "Namespaces", "Maps", "Cgroup", "Hostname")},
	)
}

func processRows() []Attack {
	return rows(PID1,
		Attack{Name: "end PID 1 by signals", Escape: "the sandbox and all work in it end at an agent's whim", Defence: list("internal/guest/signals_linux.go"), Tried: list(Redteam, Attacks), Places: []Place{Copy, Image, Machine}},
		Attack{Name: "trace and read PID 1", Escape: "the guest's key is in its memory, and a process that traces it acts as the guest", Defence: list("internal/guest/overlay/others_linux.go"), Tried: list(Redteam, Attacks), Places: []Place{Copy, Image, Machine}},
		Attack{Name: "slow down PID 1, or take its limits", Escape: "a guest that is never scheduled, or may open no file, serves no request", Defence: list("internal/guest/overlay/others_linux.go"), Tried: list(Redteam, Attacks), Places: []Place{Copy, Image, Machine}},
		Attack{Name: "confuse what answers for the kernel", Escape: "the guest changes another file or its own limits for any program that asks, or stops answering, and every rename inside hangs", Defence: list("internal/guest/overlay/rename_linux.go", "internal/guest/overlay/setgroup_linux.go", "internal/guest/overlay/others_linux.go", "internal/guest/overlay/attributes_linux.go"), Tried: list("test/attack: TestHostileNotifications")},
		Attack{Name: "find PID 1 weaker than it was", Escape: "a PID 1 that can be traced, has a descriptor too many or another limit than it was given", Defence: list("internal/guest/signals_linux.go"), Tried: list(Posture), Looks: list("PID1", "PID1Limits")},
	)
}

func secretRows() []Attack {
	const spec, enter, redaction = "internal/engine/spec.go", "internal/driver/namespace/stage/enter_linux.go", "internal/redact/redact.go"
	return rows(Secrets,
		Attack{Name: "read the host's environment", Escape: "tokens of the shell that started litterbox are the agent's", Defence: list(spec), Tried: list(Redteam, Attacks, Posture, "test/attack: TestEnvironmentEndsWithItsClient"), Places: everywhere, Looks: list("Env")},
		Attack{Name: "use an inherited descriptor", Escape: "a directory that the program that started litterbox had open is a way around every mount (CVE-2024-21626)", Defence: list(enter), Tried: list(Redteam, Attacks, Posture), Places: everywhere, Looks: list("Descriptors")},
		Attack{Name: "use a descriptor of the guest", Escape: "what the guest was started with, its private key among it, passed on to every command", Defence: list(enter), Tried: list(Attacks), Places: everywhere},
		Attack{Name: "secrets of commands in records", Escape: "a token of a command line goes wherever the branch is pushed, and lies in logs", Defence: list(redaction), Tried: list(Redteam, Attacks), Places: []Place{Copy, Degraded, Machine}},
		Attack{Name: "values of secrets in records", Escape: "a value of [secrets] that is typed into a command goes wherever the branch is pushed, and lies in logs", Defence: list("internal/redact/known.go"), Tried: list(Attacks)},
		Attack{Name: "read hidden objects of the repository", Escape: "reset and stashed secrets, other branches and other sandboxes lie in the host's object directory", Defence: list("internal/layer/gitlayer.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded}},
		Attack{Name: "read git's configuration of the host", Escape: "tokens in remote addresses, credential helpers, url rewrites", Defence: list("internal/layer/gitlayer.go"), Tried: list(Attacks), Places: []Place{Copy, Degraded}},
	)
}
