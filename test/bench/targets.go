package main

import (
	"fmt"
	"strings"
)

// target is what a row should reach. The reason is for a page where it does
// not: change it together with what it is about.
type target struct {
	what   string // the row's What; a * at its end matches anything
	beside string // the row's Beside; empty matches any
	reach  reach
	reason string
}

// reach is a limit and its subject.
type reach struct {
	limit  float64
	of     func(row) float64
	format string // how the limit is written
	least  bool   // more is better
}

func times(limit float64, beside string) reach {
	return reach{limit: limit, of: row.ratio, format: "≤ %g × " + beside}
}

func within(milliseconds float64) reach {
	return reach{limit: milliseconds, of: func(r row) float64 { return r.Here.Value * 1000 }, format: "≤ %g ms"}
}

// added limits the difference, for what is put in between.
func added(milliseconds float64) reach {
	return reach{limit: milliseconds, of: func(r row) float64 { return (r.Here.Value - r.There.Value) * 1000 }, format: "≤ %g ms added"}
}

func most(limit float64, unit string) reach {
	return reach{limit: limit, of: func(r row) float64 { return r.Here.Value }, format: strings.TrimSpace("≤ %g " + strings.ReplaceAll(unit, "%", "%%"))}
}

func least(limit float64, unit string) reach {
	return reach{limit: limit, of: func(r row) float64 { return r.Here.Value }, format: "≥ %g " + unit, least: true}
}

func (r reach) String() string { return fmt.Sprintf(r.format, r.limit) }

func (r reach) met(one row) bool {
	// As the page shows it, to two digits: a value that reads as reached is reached.
	value := float64(int(r.of(one)*100+0.5)) / 100
	if r.least {
		return value >= r.limit
	}
	return value <= r.limit
}

// Names of comparisons that a target depends on.
const (
	firstRepository = "the same in the first repository"
	outside         = "outside"
	direct          = "direct"
)

// targets is the list; the first that fits a row counts.
func targets() []target {
	const (
		clients   = "a command is a process of its own that starts, asks the sandbox's keeper and ends; its processes alone, the row of its own, are a quarter of it, the start of a larger Go program another; the rest are the records: two entries of the audit log, the cycle, two events"
		records   = "besides what bwrap does, git runs to make the branch, to write the commit and, where the checkout is large, to look at that, and a keeper is started that outlives the command; bwrap keeps no record and makes no branch"
		committed = "the commit is written by one git process, whose start and end are most of it"
		made      = "every file is made through the overlay, behind a filter of system calls"
		copies    = "a layer is renamed whatever it holds; git looks for what is not committed and records the commit, and each git is a process of its own"
		resting   = "the runtime of each Go program looks around once a minute, and the keeper's heartbeat comes every five"
		status    = "git looks at each file through the overlay, behind a filter of system calls; what the template index saves does not outweigh it in a repository of this size"
	)
	return []target{
		{"`litterbox version`", "", times(3, "hello world in Go"), "the runtime has more packages to initialise: what is heavy and rare lives in a second program already"},
		{whatCreate, "bwrap", times(5, "bwrap"), records},
		{whatCreate, firstRepository, times(1.2, "100 files"), "git status, which tells of uncommitted changes that stay out, reads an index that grows with the files"},
		{whatExec, "bwrap", within(4), clients},
		{whatExec, firstRepository, times(1.2, "100 files"), "noise: nothing in it looks at the files"},
		{whatCommit, "bwrap", within(12), clients + "; " + committed},
		{whatCommit, firstRepository, times(1.2, "100 files"), "noise: nothing changed, and only what changed is looked at"},
		{whatTen, "git add, git commit", within(12), clients + "; " + committed + "; ten files are hashed and stored besides"},
		{whatTen, firstRepository, times(1.2, "100 files"), committed + ", and it reads the parent's trees; not profiled apart"},
		{whatIgnored, "the same without them", times(1.2, "without them"), "not explained yet: ignored directories are skipped when a commit looks for changes"},
		{"first git status inside", outside, times(1, outside), status},
		{"git status inside", outside, times(1, outside), status},
		{whatFirst, "git worktree add", times(1, "git worktree add"), "the tree is written to the cache that all sandboxes share, and then a sandbox is created on it; in a small repository that is more than the checkout itself"},
		{what50, "", within(1000), "every create starts a keeper, a guest and git, and all of them want the same processors"},
		{whatMemory + "*", "", most(12, megabytes), "keeper and guest are Go programs, whose pages several sandboxes share: a sandbox alone bears all of them, each further one takes less"},
		{whatRest, "", most(0.5, percent), resting},
		{whatWakes, "", most(50, plain), resting},
		{whatStopped, "", most(0, plain), "a defect: a stopped sandbox must leave nothing that runs"},
		{whatBuildSame, outside, times(1.2, outside), "opening a file goes through the overlay's two layers"},
		{whatBuild + "*", outside, times(1.05, outside), "compilers are started with the sandbox's filter of system calls, and read through the overlay's layers"},
		{whatNpm, outside, times(1.2, outside), made},
		{whatUntar, outside, times(1.2, outside), "every file is made through the kernel's overlay; the next row shows what the sandbox adds to that"},
		{whatUntar, besideOverlay, times(1.2, besideOverlay), made},
		{whatSnapshot, "", within(50), copies},
		{whatFork, "", within(50), copies + "; a branch is made as well"},
		{whatRestore, "", within(50), copies + "; what is there is kept as a snapshot first, and the branch is moved"},
		{whatRsync + "*", besideSshd, times(2, besideSshd), "SSH is spoken twice, in programs of Go, and every file is made through the overlay; into a project, each is also hashed and written into git's objects"},
		{whatSync, besideSshd, times(2, besideSshd), "every file is made through the overlay, behind a filter of system calls, and then hashed and written into git's objects"},
		{whatBack, besideSshdBack, times(2, besideSshdBack), "what the sandbox holds is compared with its last commit first, and the checkout is looked at before and while it is written to"},
		{whatFirstShell, "", within(300), "the environment is made: a keeper and a guest are started, and by root a user account"},
		{whatNextShell, "", within(20), clients + "; HEAD and index are compared with the checkout's before and after"},
		{whatEnvDelete, "", within(100), "what runs is ended in order, and by root a user account is removed"},
		{"an HTTP request on a connection of its own", direct, added(0.3), "a connection is judged and dialled by another process: two more wake-ups for each side"},
		{"an HTTP request on a connection that is kept", direct, added(0.3), "every piece passes through one more process"},
		{whatSecret, direct, added(1), "TLS ends at the keeper and begins anew there, and each request is read and judged by another process"},
		{"an HTTPS request *", direct, added(0.3), "a connection is judged and dialled by another process, which reads the name in the TLS greeting before it goes on"},
		{whatToken, direct, added(0.3), "each piece is decrypted, searched for values, counted and encrypted again by another process"},
		{whatCheckpoints, "without them", times(1.05, "without them"), "each commit reads what has changed and starts a git, beside the command on the same processors"},
		{whatFarTrips, "", most(3, plain), "each question to the host that waits for the answer of the one before is a round trip"},
		{whatFarTree, besideTree, times(2, besideTree), "history is sent besides the files, and the outpost writes a layer that further sandboxes share; a program is brought as well"},
		{whatFarCreate, besideTrue, times(2, besideTrue), "the keeper makes a connection by ssh, asks the outpost for a place step by step, and shakes hands with the guest over it"},
		{whatFarFirst, besideTrue, times(2, besideTrue), "the keeper makes a connection by ssh, asks the outpost for a place step by step, and shakes hands with the guest over it"},
		{whatFarExec, besideTrue, times(1, besideTrue), "a command is a process of its own that starts, asks the sandbox's keeper and ends; the keeper's link is there already"},
		{whatFarTen, besideBack, times(1, besideBack), "a commit is made besides"},
		{whatBoxFirst + "*", "", within(400), "the engine makes a volume and a container and starts it, and the outpost is copied into it"},
		{whatBoxNext + "*", "", times(1, "the engine's"), records},
		{whatBoxExec + "*", "", within(15), clients},
		{whatDown + "in a container of *", direct, least(3, gigabits), "the bytes pass the outpost's link besides, whose frames share its connection"},
		{whatUp + "in a container of *", direct, least(3, gigabits), "the bytes pass the outpost's link besides, whose frames share its connection"},
		{"one stream into the sandbox", direct, least(8, gigabits), "the bytes are spliced by the keeper between two connections, so that client, keeper and server share the processors"},
		{"one stream out of the sandbox", direct, least(8, gigabits), "the bytes are spliced by the keeper between two connections, so that client, keeper and server share the processors"},
	}
}

// targetOf finds the target of a row.
func targetOf(one row) (target, bool) {
	for _, t := range targets() {
		prefix, rest := strings.CutSuffix(t.what, "*")
		fits := one.What == t.what || rest && strings.HasPrefix(one.What, prefix)
		if fits && (t.beside == "" || t.beside == one.Beside) {
			return t, true
		}
	}
	return target{}, false
}
