package guest

import (
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// stdio is the guest's side of a command's streams, and until the command
// has started the command's side too.
type stdio struct {
	child    [3]*os.File // descriptors 0, 1, 2 of the command
	input    *os.File    // written by the guest
	sources  []*source   // read by the guest
	terminal bool        // input and the one source are a pseudo-terminal's master
}

// source is one stream that comes out of a command.
type source struct {
	file  *os.File
	kind  wire.Kind
	ended atomic.Bool // no process holds the other end

	// Both are guarded by output.mu.
	passed int64 // bytes read and passed on
	owed   int64 // what passed must reach: all written before the command ended
}

func openStdio(terminal *wire.Terminal) (*stdio, error) {
	s := &stdio{terminal: terminal != nil}
	err := s.openPipes
	if s.terminal {
		err = func() error { return s.openTerminal(*terminal) }
	}
	if err := err(); err != nil {
		s.closeChildSide()
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stdio) openPipes() error {
	for i, kind := range []wire.Kind{wire.KindStdin, wire.KindStdout, wire.KindStderr} {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return os.NewSyscallError("pipe2", err)
		}
		// Only our end is non-blocking: a command expects ordinary pipes.
		if kind == wire.KindStdin {
			s.child[i], s.input = os.NewFile(uintptr(p[0]), "stdin"), pollable(p[1])
			continue
		}
		s.child[i] = os.NewFile(uintptr(p[1]), "output")
		s.sources = append(s.sources, &source{file: pollable(p[0]), kind: kind})
	}
	return nil
}

// openTerminal makes a pseudo-terminal of the sandbox's own devpts; pts(4).
func (s *stdio) openTerminal(size wire.Terminal) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open /dev/ptmx", err)
	}
	s.sources = []*source{{file: pollable(master), kind: wire.KindStdout}}
	// Input gets a descriptor of its own: it is closed with the command, while
	// processes the command leaves behind may go on writing to the terminal.
	dup, err := unix.FcntlInt(uintptr(master), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.NewSyscallError("dup", err)
	}
	s.input = pollable(dup)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return os.NewSyscallError("unlock the terminal", err)
	}
	// By descriptor (Linux 4.13): a path could lead to a terminal of another mount.
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return os.NewSyscallError("open the terminal", errno)
	}
	tty := os.NewFile(slave, "terminal")
	s.child = [3]*os.File{tty, tty, tty}
	s.resize(size)
	return nil
}

// pollable hands a descriptor to the runtime's poller, so that a goroutine
// that waits on it costs no thread, and closing it ends the wait.
func pollable(fd int) *os.File {
	_ = unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "stream "+strconv.Itoa(fd))
}

func (s *stdio) fds() []uintptr {
	var fds []uintptr
	for _, f := range s.child {
		fds = append(fds, f.Fd())
	}
	return fds
}

func (s *stdio) closeChildSide() {
	for _, f := range s.child {
		if f != nil {
			f.Close() // a terminal is here three times; closing it again is harmless
		}
	}
}

// close closes the guest's side of a command that never ran.
func (s *stdio) close() {
	if s.input != nil {
		s.input.Close()
	}
	for _, source := range s.sources {
		source.file.Close()
	}
}

// resize tells the terminal its size; the kernel tells the programs (SIGWINCH).
func (s *stdio) resize(size wire.Terminal) {
	s.control(func(fd int) {
		_ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
}

// foreground returns the terminal's foreground process group, or 0.
func (s *stdio) foreground() (group int) {
	s.control(func(fd int) { group, _ = unix.IoctlGetInt(fd, unix.TIOCGPGRP) })
	return group
}

// endOfInput returns the bytes that mean "no more input" to a terminal. A
// line that was begun takes one to be handed over and another to end;
// termios(3), VEOF.
func (s *stdio) endOfInput(midLine bool) (eof []byte) {
	s.control(func(fd int) {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return
		}
		eof = append(eof, t.Cc[unix.VEOF])
		if midLine && t.Lflag&unix.ICANON != 0 {
			eof = append(eof, t.Cc[unix.VEOF])
		}
	})
	return eof
}

// control runs f on the terminal's master while it is open.
func (s *stdio) control(f func(fd int)) {
	if !s.terminal {
		return
	}
	if conn, err := s.input.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { f(int(fd)) })
	}
}
