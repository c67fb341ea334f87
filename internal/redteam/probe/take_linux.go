package probe

import (
	"net"
	"os"
	"strconv"
)

// mostProcesses bounds what fork takes, whatever its argument: it also runs
// where nothing else bounds it.
const mostProcesses = 300

// fork starts a number of processes, says how many there were at once, and ends them.
func fork(args []string) (any, error) {
	wanted, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, err
	}
	var children []*os.Process
	defer func() {
		for _, child := range children {
			_ = child.Kill()
			_, _ = child.Wait()
		}
	}()
	answer := "ok"
	for range min(wanted, mostProcesses) {
		child, err := os.StartProcess("/bin/sleep", []string{"sleep", "300"}, &os.ProcAttr{})
		if err != nil {
			answer = named(err)
			break
		}
		children = append(children, child)
	}
	return outcomes{"fork": answer, "started": strconv.Itoa(len(children))}, nil
}

// resolve looks names up.
func resolve(args []string) (any, error) {
	result := outcomes{}
	for _, name := range args {
		result[name] = "ok"
		if _, err := net.LookupHost(name); err != nil {
			result[name] = err.Error()
		}
	}
	return result, nil
}
