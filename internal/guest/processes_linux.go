package guest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// maxCommand is how much of a command line is shown.
const maxCommand = 4 << 10

// process is one line of /proc.
type process struct {
	wire.Process
	session int
	ticks   uint64 // start, in clock ticks since boot
	over    bool   // about to be a zombie: it runs no more of its program
	zombie  bool   // only its exit code is left
}

// processes lists the commands of clients, and the processes outside of them.
func (g *guest) processes() (wire.ProcessList, error) {
	list, err := g.outside(func(p process, sessions map[int]bool) bool { return !sessions[p.session] })
	return wire.ProcessList{Processes: list, Commands: g.executions.list(), Complete: true, Editors: editors()}, err
}

// leftBy lists the processes that an ended command left running: its session,
// and those started since outside every other command's session (a daemon makes
// a session of its own).
func (g *guest) leftBy(c *child) ([]wire.Process, error) {
	return g.outside(func(p process, sessions map[int]bool) bool {
		// A tick is 10 ms long; within one, numbers count up.
		since := p.ticks > c.ticks || p.ticks == c.ticks && p.PID > c.pid
		return p.session == c.pid || since && !sessions[p.session]
	})
}

// outside lists the wanted processes that belong to no service. sessions are
// those of the commands and services that run.
func (g *guest) outside(wanted func(p process, sessions map[int]bool) bool) ([]wire.Process, error) {
	before, services := g.children.sessions(), g.supervised()
	session := map[int]int{}
	found, err := list(func(p process) bool {
		if services[p.PID] != "" || !wanted(p, before) {
			return false
		}
		session[p.PID] = p.session
		return true
	})
	if len(found) == 0 {
		return found, err
	}
	// A command that began while we looked has a session, or is about to make
	// one; and it may be over already. A service may have made a process, too.
	now, services := g.children.sessions(), g.supervised()
	return slices.DeleteFunc(found, func(p wire.Process) bool {
		_, living := readProcess(p.PID)
		return !living || now[p.PID] || now[session[p.PID]] || services[p.PID] != ""
	}), err
}

// list reads /proc, without the guest itself and ended processes.
func list(wanted func(process) bool) ([]wire.Process, error) {
	pids, err := proc.Insiders()
	if err != nil {
		return nil, wrap(err, "cannot list the processes")
	}
	var found []wire.Process
	for _, pid := range pids {
		if p, ok := readProcess(pid); ok && wanted(p) {
			p.Command = commandOf(pid, p.Command)
			found = append(found, p.Process)
		}
	}
	return fit(found), nil
}

// readProcess reads a living process. ok is false for one that is gone, a
// zombie or about to be one.
func readProcess(pid int) (p process, ok bool) {
	p, ok = readStat(pid)
	return p, ok && !p.over
}

// readStat reads proc_pid_stat(5). ok is false for a process that is gone.
func readStat(pid int) (p process, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, false
	}
	p, ok = parseStat(string(stat))
	p.PID = pid
	return p, ok
}

// parseStat reads one. The name is in parentheses and may hold any byte,
// parentheses too.
func parseStat(text string) (p process, ok bool) {
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || shut < open {
		return process{}, false
	}
	fields := strings.Fields(text[shut+1:]) // from field 3 on
	if len(fields) < 20 || fields[0] == "X" {
		return process{}, false
	}
	const exiting = 4 // PF_EXITING
	flags, _ := strconv.ParseUint(fields[6], 10, 64)
	p.zombie = fields[0] == "Z"
	p.over = p.zombie || flags&exiting != 0
	p.Command = "[" + text[open+1:shut] + "]"
	p.Parent, _ = strconv.Atoi(fields[1])
	p.Group, _ = strconv.Atoi(fields[2])
	p.session, _ = strconv.Atoi(fields[3])
	p.ticks, _ = strconv.ParseUint(fields[19], 10, 64)
	return p, true
}

// commandOf is the command line of a process, or instead when it has none.
func commandOf(pid int, instead string) string {
	line, err := proc.ReadSmall(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"), maxCommand)
	text := strings.TrimRight(strings.ReplaceAll(string(line), "\x00", " "), " ")
	if err != nil || text == "" {
		return instead
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// fit shortens the command lines, and at last the list, until the answer fits
// one frame beside everything else in it.
func fit(found []wire.Process) []wire.Process {
	for limit := maxCommand; ; limit /= 2 {
		if text, err := json.Marshal(found); err == nil && len(text) <= wire.MaxFrame-16<<10 {
			return found
		}
		if limit < 16 {
			found = found[:len(found)/2]
			continue
		}
		for i := range found {
			if c := found[i].Command; len(c) > limit {
				found[i].Command = strings.ToValidUTF8(c[:limit], "")
			}
		}
	}
}
