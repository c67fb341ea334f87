package probe

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// outside is what a place that shares the host's file system and processes may
// not touch; all of it belongs to the test.
type outside struct {
	Dir      string // holds the files secret, victim and mode
	Keys     string // of the sandbox's wire
	PID      int
	TCP, UDP string
	Socket   string // a datagram socket's path
	Abstract string // and name
	Stream   string // a stream socket's path
	Terminal string
	Memory   int // a System V shared memory segment
}

// shared tries everything that a place like that could do to things outside it.
func shared(args []string) (any, error) {
	var to outside
	if err := json.Unmarshal([]byte(args[0]), &to); err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(to.Dir, name) }
	proc := "/proc/" + strconv.Itoa(to.PID) + "/"
	now := time.Now()
	fd := func(name string, flags int) func() error {
		return func() error {
			at, err := unix.Open(name, flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0o600)
			if err == nil {
				err = unix.Close(at)
			}
			return err
		}
	}
	tries := map[string]func() error{
		// Files.
		"read":     fd(in("secret"), unix.O_RDONLY),
		"list":     fd(to.Dir, unix.O_RDONLY|unix.O_DIRECTORY),
		"write":    fd(in("victim"), unix.O_WRONLY),
		"make":     fd(in("made"), unix.O_WRONLY|unix.O_CREAT),
		"truncate": func() error { return os.Truncate(in("victim"), 1) },
		"mkdir":    func() error { return os.Mkdir(in("dir"), 0o700) },
		"remove":   func() error { return os.Remove(in("dir")) },
		"rename": func() error {
			return errors.Join(os.Rename(in("victim"), in("moved")), os.Rename(in("moved"), in("victim")))
		},
		"link":       func() error { return os.Link(in("secret"), "stolen-"+strconv.Itoa(os.Getpid())) },
		"symlink":    func() error { return os.Symlink("victim", in("symlink")) },
		"chmod":      func() error { return os.Chmod(in("mode"), 0o777) },
		"chmod link": func() error { return throughLink(in("mode"), func(name string) error { return os.Chmod(name, 0o777) }) },
		"chmod fd":   func() error { return byPath(in("mode"), func(name string) error { return os.Chmod(name, 0o777) }) },
		"times":      func() error { return os.Chtimes(in("mode"), now, now) },
		"chown":      func() error { return os.Chown(in("mode"), os.Getuid(), os.Getgid()) },
		"keys":       fd(to.Keys, unix.O_RDONLY),
		// Other processes.
		"signal":      func() error { return unix.Kill(to.PID, unix.SIGCONT) },
		"environ":     fd(proc+"environ", unix.O_RDONLY),
		"root":        fd(proc+"root/etc", unix.O_RDONLY|unix.O_DIRECTORY),
		"files":       func() error { _, err := os.Readlink(proc + "fd/0"); return err },
		"trace":       func() error { return unix.PtraceSeize(to.PID) },
		"limits":      func() error { return setLimit(to.PID) },
		"priority":    func() error { return unix.Setpriority(unix.PRIO_PROCESS, to.PID, 5) },
		"affinity":    func() error { return setAffinity(to.PID) },
		"scheduler":   func() error { return setScheduler(to.PID) },
		"io priority": func() error { return setIOPriority(to.PID) },
		// Files of the place itself, as it could with any of the user's:
		// root's are the system's.
		"lease": own(lease),
		"flags": own(func(at int, _ string) error { return setFlags(at) }),
		"segment": func() error {
			at, err := unix.SysvShmAttach(to.Memory, 0, 0)
			if err == nil {
				err = unix.SysvShmDetach(at)
			}
			return err
		},
		"terminal": fd(to.Terminal, unix.O_RDWR),
		// Sockets.
		"tcp":             func() error { return dial("tcp", to.TCP) },
		"udp":             func() error { return dial("udp", to.UDP) },
		"listen":          func() error { return listen("127.0.0.1:0") },
		"unix":            func() error { return dial("unix", to.Stream) },
		"unix datagram":   func() error { return dial("unixgram", to.Socket) },
		"abstract":        func() error { return dial("unixgram", "@"+to.Abstract) },
		"pair to path":    func() error { return fromPair(to.Socket) },
		"pair to name":    func() error { return fromPair("@" + to.Abstract) },
		"pair connecting": func() error { return connectPair(to.Socket) },
	}
	got := outcomes{}
	for _, name := range []string{
		"read", "list", "write", "make", "truncate", "mkdir", "remove", "rename", "link", "symlink", "chmod", "chmod link", "chmod fd", "times",
		"chown", "keys", "signal", "environ", "root", "files", "trace", "limits", "priority", "affinity", "scheduler",
		"io priority", "lease", "flags", "segment", "terminal", "tcp", "udp", "listen", "unix",
		"unix datagram", "abstract", "pair to path", "pair to name", "pair connecting",
	} {
		got[name] = named(tries[name]())
	}
	return got, nil
}

// throughLink uses a name that the process may change, for a file that it may not.
func throughLink(path string, use func(string) error) error {
	link := "link-" + strconv.Itoa(os.Getpid())
	if err := os.Symlink(path, link); err != nil {
		return err
	}
	return errors.Join(use(link), os.Remove(link))
}

// byPath names an open descriptor; O_PATH needs no right to the file.
func byPath(path string, use func(string) error) error {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return use("/proc/self/fd/" + strconv.Itoa(at))
}

func setLimit(pid int) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &now); err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_CORE, &now, nil)
}

func dial(network, address string) error {
	conn, err := net.Dial(network, address)
	if err == nil {
		_, err = conn.Write([]byte("x"))
		conn.Close()
	}
	return err
}

func listen(address string) error {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		err = listener.Close()
	}
	return err
}

func fromPair(name string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: name})
}

func connectPair(name string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Connect(pair[0], &unix.SockaddrUnix{Name: name})
}
