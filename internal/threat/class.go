package threat

// Class is a kind of attack.
type Class string

// The classes.
const (
	Files     Class = "files"
	WayOut    Class = "way-out"
	Git       Class = "git"
	Objects   Class = "objects"
	Live      Class = "live"
	Kernel    Class = "kernel"
	PID1      Class = "pid1"
	Networks  Class = "network"
	Secrets   Class = "secrets"
	Users     Class = "users"
	Resources Class = "resources"
	Terminal  Class = "terminal"
	Images    Class = "images"
	Tools     Class = "tools"
)

// Text is what the pages say about a class.
type Text struct {
	Class Class
	About string
	Links []Link // public references
}

// Link is a public reference and what it says.
type Link struct{ Name, URL, What string }

// Classes describes the classes, in the order of the table.
func Classes() []Text {
	return []Text{
		{Files, "The sandbox has a copy of the repository and read-only system directories. Nothing of the human's home, of other projects or of other users is mounted. The attacks read and write real paths of the host; what is looked at afterwards are the host's files.", []Link{
			{"CVE-2024-21626", "https://nvd.nist.gov/vuln/detail/CVE-2024-21626", "runc: an inherited directory descriptor led to the host's file system"},
			{"CVE-2025-31133", "https://nvd.nist.gov/vuln/detail/CVE-2025-31133", "runc: masked paths were replaced and became writable"},
			{"CVE-2025-52565", "https://nvd.nist.gov/vuln/detail/CVE-2025-52565", "runc: mounts of /dev/console went astray"},
			{"CVE-2026-46695", "https://nvd.nist.gov/vuln/detail/CVE-2026-46695", "a read-only mount was remounted for writing from inside"},
		}},
		{Git, "An agent controls its repository, and git runs programs that a repository names, even with hooks switched off. litterbox never opens that repository with the host's git. Each attack plants such a repository, and then the commands of a human run.", []Link{
			{"git-config(1)", "https://git-scm.com/docs/git-config", "`core.fsmonitor`, `core.hooksPath`, `filter.<driver>.clean`, `diff.external`, `gpg.program`"},
			{"CVE-2022-24765", "https://nvd.nist.gov/vuln/detail/CVE-2022-24765", "git ran `core.fsmonitor` of a repository that another user had made"},
			{"safe.bareRepository", "https://git-scm.com/docs/git-config#Documentation/git-config.txt-safebareRepository", "bare repositories inside of a repository"},
		}},
		{Networks, "A sandbox has a loopback interface and nothing else, and what it connects to ends at a proxy that decides. The attacks connect to listeners that redteam itself opens on loopback, and to addresses and names that are reserved for documentation and tests (RFC 5737, RFC 6761).", []Link{
			{"CVE-2025-66479", "https://nvd.nist.gov/vuln/detail/CVE-2025-66479", "an empty allow-list allowed everything"},
			{"RFC 5737", "https://www.rfc-editor.org/rfc/rfc5737", "addresses for documentation"},
			{"RFC 6761", "https://www.rfc-editor.org/rfc/rfc6761", "names under `.invalid`"},
		}},
		{Kernel, "The filter of system calls refuses what an ordinary program does not need and sandboxes were left by. Arguments are such that the kernel refuses the call for another reason where nothing else does: so the two are told apart, and nothing happens to the machine.", []Link{
			{"seccomp(2)", "https://man7.org/linux/man-pages/man2/seccomp.2.html", "filters, and why the architecture must be checked"},
			{"CVE-2019-7303", "https://nvd.nist.gov/vuln/detail/CVE-2019-7303", "snapd: TIOCSTI with high bits passed the filter"},
			{"ioctl_tty(2)", "https://man7.org/linux/man-pages/man2/ioctl_tty.2.html", "TIOCSTI"},
			{"F_SETLEASE(2const)", "https://man7.org/linux/man-pages/man2/F_SETLEASE.2const.html", "leases hold up any program that opens the file"},
		}},
		{PID1, "The first process of a sandbox is litterbox's own and runs under the same user id as the agent's programs. It must not be ended, read, traced, slowed down or starved of descriptors by them.", []Link{
			{"pid_namespaces(7)", "https://man7.org/linux/man-pages/man7/pid_namespaces.7.html", "which signals reach PID 1"},
			{"ptrace(2)", "https://man7.org/linux/man-pages/man2/ptrace.2.html", "who may trace whom"},
			{"prlimit(2)", "https://man7.org/linux/man-pages/man2/prlimit.2.html", "limits of another process of the same user"},
		}},
		{Secrets, "What the human's shell holds stays outside: variables, open files, and tokens on command lines, which would otherwise be pushed with commit messages.", []Link{
			{"CVE-2024-21626", "https://nvd.nist.gov/vuln/detail/CVE-2024-21626", "runc: a descriptor leaked into the container"},
			{"CWE-532", "https://cwe.mitre.org/data/definitions/532.html", "secrets in logs"},
		}},
		{Resources, "Bombs with small amounts, in sandboxes with smaller limits: 200 processes where 64 are allowed, 320 MiB of memory where 128 are, 48 MiB of disk where 16 are. The sandbox has to end the bomb, name the limit in an event and serve the next command.", []Link{
			{"CWE-400", "https://cwe.mitre.org/data/definitions/400.html", "uncontrolled use of resources"},
			{"cgroups(7)", "https://man7.org/linux/man-pages/man7/cgroups.7.html", "one of the ways in which limits are kept"},
		}},
		{WayOut, "Results leave a sandbox as files that litterbox reads, copies and commits. Links, dots, FIFOs and other spellings of `.git` are how such a reader was led astray elsewhere.", []Link{
			{"GHSA-vp62-88p7-qqf5", "https://github.com/advisories/GHSA-vp62-88p7-qqf5", "moby: links were followed while copying out of a container"},
			{"container-use#337", "https://github.com/dagger/container-use/issues/337", "a file tool wrote to the host through `../../`"},
			{"CVE-2014-9390", "https://nvd.nist.gov/vuln/detail/CVE-2014-9390", "git: `.GIT` and `git~1` are `.git` on some file systems"},
		}},
		{Terminal, "Whatever an agent can name, it can name with escape sequences. Listings show them as text.", []Link{
			{"CWE-150", "https://cwe.mitre.org/data/definitions/150.html", "escape sequences that are not neutralised"},
		}},
		{Objects, "An agent can write git objects by plumbing, for which no file has to exist. They are judged before the host's git sees them.", []Link{
			{"git-fsck(1)", "https://git-scm.com/docs/git-fsck", "`hasDotdot`, `hasDotgit` and others"},
			{"CVE-2018-11235", "https://nvd.nist.gov/vuln/detail/CVE-2018-11235", "git: names from a repository left the work tree"},
		}},
		{Live, "A live environment works on the human's own checkout, which the human's git, editor and package manager read too.", []Link{
			{"git-config(1)", "https://git-scm.com/docs/git-config", "what a repository's configuration can run"},
		}},
		{Users, "Other users of the machine, other sandboxes, and what one user leaves for another: state, configuration, repositories.", []Link{
			{"CVE-2022-24765", "https://nvd.nist.gov/vuln/detail/CVE-2022-24765", "git obeyed a repository that another user had made"},
			{"safe.directory", "https://git-scm.com/docs/git-config#Documentation/git-config.txt-safedirectory", "whose repositories git opens"},
		}},
		{Images, "An image, an archive and a registry are strangers' data, read before anything is confined.", []Link{
			{"OCI image specification", "https://github.com/opencontainers/image-spec/blob/main/manifest.md", "manifests, layers and media types"},
			{"CVE-2021-41190", "https://nvd.nist.gov/vuln/detail/CVE-2021-41190", "a document that is a manifest to one reader and an index to another"},
		}},
		{Tools, "The Model Context Protocol server acts for an agent on the host.", []Link{
			{"CVE-2025-68143", "https://nvd.nist.gov/vuln/detail/CVE-2025-68143", "a git server for agents made repositories anywhere"},
			{"MCP security", "https://modelcontextprotocol.io/specification/2025-06-18/basic/security_best_practices", "confused deputies and sessions"},
		}},
	}
}
