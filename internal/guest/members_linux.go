package guest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// maxEnviron is how much of a process's environment is looked at.
const maxEnviron = 256 << 10

// members lists the living processes of a service: the session that its process
// leads, those left behind that carry its mark, and everything below these.
func (g *guest) members(name string, leader *child) []process {
	all := everybody()
	own := g.family(all, map[*child]string{leader: name})
	var members []process
	for _, p := range all {
		if own[p.PID] == name {
			members = append(members, p)
		}
	}
	return members
}

// supervised maps each process of a service to that service. It costs nothing
// when no service is configured.
func (g *guest) supervised() map[int]string {
	g.services.mu.Lock()
	leaders := map[*child]string{}
	for name, u := range g.services.units {
		if u.child != nil && u.machine.State != service.Stopped {
			leaders[u.child] = name
		}
	}
	g.services.mu.Unlock()
	if len(leaders) == 0 {
		return nil
	}
	return g.family(everybody(), leaders)
}

// family sorts processes by service. first has the first process of each
// service's current or last run.
func (g *guest) family(all []process, first map[*child]string) map[int]string {
	byPID := make(map[int]process, len(all))
	for _, p := range all {
		byPID[p.PID] = p
	}
	names, leaders, marks := map[string]bool{}, map[int]string{}, map[uint64]string{}
	for child, name := range first {
		names[name] = true
		leaders[child.pid] = name
		if child.mark != 0 {
			marks[child.mark] = name
		}
	}
	sessions := g.children.sessions()
	own := map[int]string{}
	var find func(pid, depth int) string
	find = func(pid, depth int) string {
		p, living := byPID[pid]
		if name, known := own[pid]; known || !living || depth > len(all) {
			return name
		}
		name := leaders[p.session]
		switch {
		case name != "":
		case p.Parent != os.Getpid():
			name = find(p.Parent, depth+1)
		case !sessions[p.PID]: // an orphan, and no command of a client
			if name = marks[limitOf(pid)]; name != "" {
				break
			}
			if variable := variableOf(pid); names[variable] {
				name = variable
			}
		}
		own[pid] = name
		return name
	}
	for _, p := range all {
		find(p.PID, 0)
	}
	for pid, name := range own {
		if name == "" {
			delete(own, pid)
		}
	}
	return own
}

// variableOf reads the service's name that its processes inherit, unless they
// clear their environment.
func variableOf(pid int) string {
	environ, err := proc.ReadSmall(filepath.Join("/proc", strconv.Itoa(pid), "environ"), maxEnviron)
	if err != nil {
		return ""
	}
	for entry := range strings.SplitSeq(string(environ), "\x00") {
		if name, ok := strings.CutPrefix(entry, serviceVariable+"="); ok {
			return name
		}
	}
	return ""
}

// everybody lists the living processes except the guest.
func everybody() []process {
	pids, err := proc.Insiders()
	if err != nil {
		return nil
	}
	var all []process
	for _, pid := range pids {
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	return all
}
