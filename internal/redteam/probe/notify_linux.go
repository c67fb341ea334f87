package probe

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notify SEED DURATION DIRECTORY OUTSIDE PID: processes that make the calls that the
// filter puts to the guest, as notified does, and that are killed in the middle of
// it. It answers with the number of calls and their answers.
func notify(args []string) (any, error) {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return nil, err
	}
	lasting, err := time.ParseDuration(args[1])
	if err != nil {
		return nil, err
	}
	const patience = 2 * time.Minute // for one process, even on a busy machine
	// The processes may take away what is their own, including the permissions of the
	// project and of all directories above it, where these are the sandbox's. The next
	// process, and the check afterwards whether calls are answered, need them.
	project, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	own := []string{project, filepath.Join(project, "src")} // not ".", which is looked up in itself
	if args[4] == "1" {
		for above := filepath.Dir(project); ; above = filepath.Dir(above) {
			own = append([]string{above}, own...) // the topmost first
			if above == "/" {
				break
			}
		}
	}
	again := func() {
		for _, dir := range own {
			_ = os.Chmod(dir, 0o755) // a renamed one is not missed, one of the system's is refused
		}
	}
	counts := map[string]int{}
	chance := rand.New(rand.NewPCG(seed, 1))
	for end, round := time.Now().Add(lasting), seed; round == seed || time.Now().Before(end); round++ {
		dir := filepath.Join(args[2], strconv.FormatUint(round, 10))
		child := exec.Command("/proc/self/exe", "notified", strconv.FormatUint(round, 10), dir, args[3], args[4])
		child.Args[0] = os.Args[0]
		var output strings.Builder
		child.Stdout = &output
		if err := child.Start(); err != nil {
			return nil, err
		}
		after := patience
		if (round-seed)%3 == 2 {
			after = time.Duration(chance.IntN(30_000)) * time.Microsecond
		}
		killer := time.AfterFunc(after, func() { _ = child.Process.Kill() })
		_ = child.Wait() // killed, or ended by what it did to itself
		if !killer.Stop() && after == patience {
			counts["hangs"]++
		}
		var one map[string]int
		if json.Unmarshal([]byte(output.String()), &one) == nil {
			for name, n := range one {
				counts[name] += n
			}
		}
		counts["processes"]++
		again()
		_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
		_ = os.RemoveAll(dir) // files that cannot be removed stay in the sandbox
	}
	time.Sleep(100 * time.Millisecond) // a call of the last one that was killed may be under way
	again()
	result := outcomes{}
	for name, n := range counts {
		result[name] = strconv.Itoa(n)
	}
	return result, nil
}

// notified SEED DIRECTORY OUTSIDE PID: one such process. Some threads call, with
// arguments of every kind; another changes meanwhile what these mean.
func notified(args []string) (any, error) {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return nil, err
	}
	pid, err := strconv.ParseInt(args[3], 10, 32)
	if err != nil {
		return nil, err
	}
	if pid == 1 && holdsMachine() {
		return nil, errMachine
	}
	h, err := newHostile(args[1], args[2])
	if err != nil {
		return nil, err
	}
	// Groups and users, and numbers that nothing has, are tried where PID 1 is
	// the sandbox's: elsewhere they could be the machine's.
	own := int64(os.Getpid())
	h.processes = []int64{pid, 0, own, 1<<32 + pid}
	if h.everybody = pid == 1; h.everybody {
		h.processes = append(h.processes, -1, 2, 1<<32)
		h.names = append(h.names, "/", "/proc/1/root", "/proc/1/cwd", "/proc/self/../1/cwd")
		for fd := range 12 {
			h.names = append(h.names, fmt.Sprintf("/proc/1/fd/%d", fd))
		}
	}
	var ended atomic.Bool
	changing := make(chan struct{})
	go func() {
		defer close(changing)
		for chance := rand.New(rand.NewPCG(seed, 2)); !ended.Load(); {
			h.change(chance)
			runtime.Gosched()
		}
	}()
	const threads, calls = 3, 200
	counts := make([]map[string]int, threads)
	var all sync.WaitGroup
	for i := range counts {
		counts[i] = map[string]int{}
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			chance := rand.New(rand.NewPCG(seed, uint64(3+i)))
			for range calls {
				counts[i][h.call(chance)]++
			}
		})
	}
	all.Wait()
	ended.Store(true)
	<-changing
	total := map[string]int{}
	for _, one := range counts {
		for name, n := range one {
			total[name] += n
		}
	}
	return total, nil
}

// hostile holds what the arguments of calls are taken from.
type hostile struct {
	dir   string
	names []string
	files []int
	pages []byte // two pages; memory after them may not be readable

	processes []int64
	everybody bool // groups and users too
}

// newHostile makes directories and files to change, and opens some.
func newHostile(dir, outside string) (*hostile, error) {
	h := &hostile{dir: dir}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"", "a", "b", "a/deep"} {
		if err := os.MkdirAll(in(name), 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"file", "a/file"} {
		if err := os.WriteFile(in(name), nil, 0o755); err != nil {
			return nil, err
		}
	}
	_ = os.Symlink("file", in("link")) // it may exist
	_ = os.Symlink(outside, in("out"))
	for _, name := range []string{"", "a", "file", "b"} {
		fd, err := unix.Open(in(name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			h.files = append(h.files, fd)
		}
	}
	h.names = []string{
		in("a"), in("b"), in("a/deep"), in("file"), in("a/file"), in("link"), in("out"), in("out") + "/x", outside, "a", "b", "src", "src2", "file", ".", "",
		in("a") + "/", in("a") + "/.", in("a") + "/..", "/proc/self/fd/3", "/proc/self/cwd", "/proc/thread-self/cwd/a", "/dev/fd/4", "/dev/fd/../cwd",
		strings.Repeat("a/../", 800) + "a", strings.Repeat("x", 4095), strings.Repeat("y", 300),
	}
	for i := range 12 {
		h.names = append(h.names, fmt.Sprintf("/proc/self/fd/%d", i))
	}
	page := os.Getpagesize()
	pages, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	h.pages = pages
	return h, unix.Mprotect(pages[2*page:], unix.PROT_NONE)
}

// change swaps names and descriptors, and writes into the arguments.
func (h *hostile) change(chance *rand.Rand) {
	at := func() string { return filepath.Join(h.dir, []string{"a", "b", "file", "link", "out"}[chance.IntN(5)]) }
	switch chance.IntN(4) {
	case 0:
		_ = unix.Renameat2(unix.AT_FDCWD, at(), unix.AT_FDCWD, at(), unix.RENAME_EXCHANGE)
	case 1:
		if len(h.files) > 1 {
			_ = unix.Dup3(h.files[chance.IntN(len(h.files))], 200, 0)
		}
	case 2:
		h.write(chance)
	case 3:
		page := os.Getpagesize()
		// Nothing of ours reads there, but the kernel and the guest do.
		_ = unix.Mprotect(h.pages[page:2*page], unix.PROT_NONE)
		_ = unix.Mprotect(h.pages[page:2*page], unix.PROT_READ|unix.PROT_WRITE)
	}
}

// write puts a name into the first page, sometimes so that it ends with the page.
func (h *hostile) write(chance *rand.Rand) uintptr {
	name := h.names[chance.IntN(len(h.names))] + "\x00"
	page := os.Getpagesize()
	offset := 0
	if chance.IntN(2) == 0 {
		offset = max(0, page-len(name)+chance.IntN(2)) // the end may be missing
	}
	copy(h.pages[offset:page], name)
	return uintptr(unsafe.Pointer(&h.pages[offset]))
}

// call makes one call, and returns its answer.
func (h *hostile) call(chance *rand.Rand) string {
	address := func() uintptr {
		switch chance.IntN(8) {
		case 0:
			return []uintptr{0, 1, ^uintptr(0), 1 << 47, 1<<63 + 4096, ^uintptr(4095)}[chance.IntN(6)]
		case 1:
			return uintptr(unsafe.Pointer(&h.pages[chance.IntN(len(h.pages))]))
		}
		return h.write(chance)
	}
	descriptor := func() uintptr {
		switch chance.IntN(5) {
		case 0:
			return []uintptr{bad, bad - 99, 0, 200, 1 << 31, 1<<32 + 3, 0xffffff9c}[chance.IntN(7)]
		case 1, 2:
			return bad - 99
		}
		return uintptr(h.files[chance.IntN(len(h.files))])
	}
	mode := func() uintptr {
		return uintptr([]uint64{0o2755, 0o4755, 0o6777, 0o755, 0o1777, 1<<32 | 0o2755, chance.Uint64()}[chance.IntN(7)])
	}
	flags := func() uintptr {
		return uintptr([]uint64{0, 0x100, 0x1000, 0x1100, 1, 2, 1 << 32, chance.Uint64()}[chance.IntN(8)])
	}
	who := func() uintptr { return uintptr(h.processes[chance.IntN(len(h.processes))]) }
	kind := func(of int, process uintptr) uintptr {
		if !h.everybody {
			return process
		}
		return uintptr(chance.IntN(of))
	}
	var number uintptr
	var a [5]uintptr
	switch chance.IntN(13) {
	case 0, 1:
		number, a = unix.SYS_FCHMODAT, [5]uintptr{descriptor(), address(), mode()}
	case 2:
		number, a = unix.SYS_FCHMOD, [5]uintptr{descriptor(), mode()}
	case 3:
		number, a = unix.SYS_FCHMODAT2, [5]uintptr{descriptor(), address(), mode(), flags()}
	case 4:
		number, a = unix.SYS_UTIMENSAT, [5]uintptr{descriptor(), address(), address(), flags()}
	case 5, 6, 7:
		number, a = unix.SYS_RENAMEAT2, [5]uintptr{descriptor(), address(), descriptor(), address(), flags()}
	case 8:
		const core = 4 // RLIMIT_CORE
		number, a = unix.SYS_PRLIMIT64, [5]uintptr{who(), core, address(), address()}
	case 9:
		number, a = unix.SYS_SETPRIORITY, [5]uintptr{kind(4, unix.PRIO_PROCESS), who(), uintptr(chance.IntN(5))}
	case 10:
		number, a = unix.SYS_SCHED_SETAFFINITY, [5]uintptr{who(), 8, address()}
	case 11:
		scheduling := []uintptr{unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR}
		number, a = scheduling[chance.IntN(len(scheduling))], [5]uintptr{who(), address(), address()}
	case 12:
		number, a = unix.SYS_IOPRIO_SET, [5]uintptr{kind(4, 1), who(), 2<<13 | uintptr(chance.IntN(8))}
	}
	_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], 0)
	return named(errno)
}
