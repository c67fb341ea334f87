package egress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"golang.org/x/sys/unix"
)

// owners finds the process behind a connection, for the record of attempts. It
// is a service to the reader and no basis for a decision, as its findings are
// the sandbox's own word.
type owners struct {
	Sockets *Diag

	mu     sync.Mutex
	recent []owner          // those that connected last, newest first
	seen   map[string]owner // all sockets of the process that was searched last
}

// owner is a process, with the descriptor that it was last found by.
type owner struct{ pid, fd int }

// of names the process that sends from address over network, tcp or udp, as
// "comm (pid)"; empty when it cannot be found. The destination of a connection
// finds it faster.
func (o *owners) of(network string, address, destination netip.AddrPort) string {
	inode := ""
	if network == "tcp" {
		inode = o.Sockets.inode(address, destination)
	}
	if inode == "" {
		inode = socketInode(network, address)
	}
	if inode == "" {
		return ""
	}
	link := "socket:[" + inode + "]"
	o.mu.Lock()
	defer o.mu.Unlock()
	// A program that connects once connects again, from the same descriptor or one
	// of the next; and those that connect in a crowd were seen with the first.
	if one, ok := o.seen[link]; ok && is(one.pid, one.fd, link) {
		return processName(one.pid)
	}
	for i, one := range o.recent {
		for fd := one.fd; fd < one.fd+near; fd++ {
			if is(one.pid, fd, link) {
				o.recent[i].fd = fd
				return processName(one.pid)
			}
		}
	}
	for _, one := range o.recent {
		if o.search(one.pid, link) {
			return processName(one.pid)
		}
	}
	for _, pid := range processes() {
		if o.search(pid, link) {
			return processName(pid)
		}
	}
	return ""
}

// near is how many descriptors from the last one on are tried first.
const near = 4

// search looks for a socket among the descriptors of a process, remembers what
// it saw, and puts the process at the head of those that connected last.
func (o *owners) search(pid int, link string) bool {
	seen := sockets(pid)
	one, ok := seen[link]
	if !ok {
		return false
	}
	o.seen = seen
	o.recent = slices.DeleteFunc(o.recent, func(one owner) bool { return one.pid == pid })
	o.recent = slices.Insert(o.recent, 0, one)
	o.recent = o.recent[:min(len(o.recent), 4)]
	return true
}

// processes lists all but this one, the newest first.
func processes() []int {
	pids, err := proc.Insiders()
	if err != nil {
		return nil
	}
	slices.Sort(pids)
	slices.Reverse(pids)
	return pids
}

// socketInode looks the local end up in /proc/net/tcp or udp (proc_net_tcp in
// the kernel's Documentation/networking): columns 2 and 10. A socket of IPv6
// can speak IPv4 too, and is then in the other table.
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
	return InodeOf(file, port)
}

func InodeOf(table io.Reader, port string) string {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], port) {
			return fields[9]
		}
	}
	return ""
}

// is reports whether a descriptor of a process is the socket of link.
func is(pid, fd int, link string) bool {
	target := make([]byte, len(link)+1)
	n, err := unix.Readlink("/proc/"+strconv.Itoa(pid)+"/fd/"+strconv.Itoa(fd), target)
	return err == nil && string(target[:n]) == link
}

// sockets lists the sockets that a process has open, by what its descriptors link to.
func sockets(pid int) map[string]owner {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return nil
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	if err != nil {
		return nil
	}
	all := map[string]owner{}
	target := make([]byte, 64)
	for _, name := range names[:min(len(names), mostSockets)] {
		n, err := unix.Readlinkat(int(file.Fd()), name, target)
		if err != nil || !bytes.HasPrefix(target[:n], []byte("socket:")) {
			continue
		}
		if fd, err := strconv.Atoi(name); err == nil {
			all[string(target[:n])] = owner{pid, fd}
		}
	}
	return all
}

// mostSockets bounds the cost of a process with many descriptors.
const mostSockets = 8192

// processName reads comm by hand: os.ReadFile would be half of the whole
// search.
func processName(pid int) string {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/comm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	comm := make([]byte, 64) // TASK_COMM_LEN is 16
	n, err := unix.Read(fd, comm)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s (%d)", bytes.TrimSpace(comm[:n]), pid)
}
