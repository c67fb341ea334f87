package guest

import (
	"bufio"
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// owners finds the process behind a connection, for the record of what was
// tried. It is a service to the reader, no basis of a decision: what it finds
// is the sandbox's own word.
type owners struct {
	mu     sync.Mutex
	recent []int // pids that connected last, newest first
}

// of names the process that sends from address over network, tcp or udp, as
// "comm (pid)"; empty when it cannot be found.
func (o *owners) of(network string, address netip.AddrPort) string {
	inode := socketInode(network, address)
	if inode == "" {
		return ""
	}
	link := "socket:[" + inode + "]"
	o.mu.Lock()
	defer o.mu.Unlock()
	// A program that connects once connects again; all others cost a walk.
	for _, pid := range o.recent {
		if holds(pid, link) {
			return processName(pid)
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || !holds(pid, link) {
			continue
		}
		o.recent = append([]int{pid}, o.recent...)
		o.recent = o.recent[:min(len(o.recent), 4)]
		return processName(pid)
	}
	return ""
}

// socketInode looks the local end up in /proc/net/tcp or udp (proc_net_tcp in
// the kernel's Documentation/networking): columns 2 and 10. A socket of IPv6
// can speak IPv4 too, and stands in the other table then.
func socketInode(network string, address netip.AddrPort) string {
	tables := []string{network + "6"}
	if address.Addr().Unmap().Is4() {
		tables = []string{network, network + "6"}
	}
	port := fmt.Sprintf(":%04X", address.Port())
	for _, table := range tables {
		if inode := inodeIn("/proc/self/net/"+table, port); inode != "" {
			return inode
		}
	}
	return ""
}

func inodeIn(table, port string) string {
	file, err := os.Open(table)
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], port) {
			return fields[9]
		}
	}
	return ""
}

func holds(pid int, link string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	file, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	if err != nil {
		return false
	}
	target := make([]byte, len(link)+1)
	for _, name := range names {
		n, err := unix.Readlinkat(int(file.Fd()), name, target)
		if err == nil && n == len(link) && string(target[:n]) == link {
			return true
		}
	}
	return false
}

func processName(pid int) string {
	comm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s (%d)", bytes.TrimSpace(comm), pid)
}
