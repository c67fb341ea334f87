package overlay

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// renamer makes renaming a directory work. An overlay mounted in a user
// namespace answers EXDEV for a directory that a lower layer has (userxattr
// forbids redirect_dir; Documentation/filesystems/overlayfs.rst), which breaks
// git mv and os.Rename. So the kernel asks here before each rename of a
// command (seccomp_unotify(2)): that directory becomes one of the upper layer
// alone, under its own name, and then the caller's own call goes on, with the
// caller's own rights. No rename is ever done on the caller's behalf, so nothing
// is gained by changing the arguments meanwhile. (For the other calls see
// setGroup and onlyItself.)
//
// Calls are handled one after the other. A process whose working directory
// another process renames this way finds itself in a deleted one.
type renamer struct {
	Watched
	workspace string
	device    uint64 // of the workspace's overlay
	overlay   bool   // false: another file system, where there is nothing to do
	root      unix.Stat_t
	mounts    []uint64 // where directories may get the set-group-ID bit
	install   bool     // see WithoutSetID
	probe     *scratch // tells at once which directories are plain; nil until one is needed
}

func NewRenamer(listener int, workspace, home string) (*renamer, error) {
	r := &renamer{Watched: Watched{listener}, workspace: workspace, mounts: mountsOf(workspace, home, "/tmp", "/var/tmp")}
	var st unix.Stat_t
	if err := unix.Stat(workspace, &st); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot find the workspace %q", workspace)
	}
	r.device = st.Dev
	var fs unix.Statfs_t
	if err := unix.Statfs(workspace, &fs); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot read the file system of %q", workspace)
	}
	r.overlay = fs.Type == unix.OVERLAYFS_SUPER_MAGIC
	if err := unix.Stat("/", &r.root); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot read the root directory")
	}
	return r, nil
}

// WithoutSetID gives programs that ask for set-user-ID or set-group-ID bits the
// rest of their mode, on every mount: a package manager would give up otherwise.
func (r *renamer) WithoutSetID() { r.install = true }

// Serve answers every notification, for as long as the guest lives.
func (r *renamer) Serve() {
	r.each(func(n *notification) answer {
		if pid, ok := aboutProcess(n); ok {
			return r.onlyItself(n, pid)
		}
		c, ok := callOf(n)
		if !ok { // never one to let go on
			return answer{errno: -int32(r.setGroup(n))}
		}
		r.help(n, c)
		return answer{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	})
}

// renameCall is one call's arguments, still as the caller gave them.
type renameCall struct {
	oldDir, newDir   int32
	oldPath, newPath uint64 // addresses
	flags            uint64
}

// callOf distinguishes the three calls, by the numbers of each architecture
// (arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h).
func callOf(n *notification) (c renameCall, ok bool) {
	const here = unix.AT_FDCWD
	a := n.args
	switch [2]uint32{n.arch, uint32(n.nr)} {
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 82}: // rename
		return renameCall{here, here, a[0], a[1], 0}, true
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 264}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 38}: // renameat
		return renameCall{int32(a[0]), int32(a[2]), a[1], a[3], 0}, true
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 316}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 276}: // renameat2
		return renameCall{int32(a[0]), int32(a[2]), a[1], a[3], a[4] & 0xffffffff}, true
	}
	return renameCall{}, false
}

// help does what the call needs to succeed. On failure the caller gets the
// kernel's own error.
func (r *renamer) help(n *notification, c renameCall) {
	defer func() { _ = recover() }() // a defect here must not stop every rename inside
	if !r.overlay || c.flags&^(unix.RENAME_EXCHANGE|unix.RENAME_NOREPLACE) != 0 {
		return
	}
	exchange := c.flags&unix.RENAME_EXCHANGE != 0
	from, ok := callerPath(n.pid, c.oldDir, c.oldPath)
	if !ok {
		return
	}
	// Nearly every rename is of a file, and ends here.
	fromHere := r.isDirectory(from)
	if !fromHere && !exchange {
		return
	}
	to, ok := callerPath(n.pid, c.newDir, c.newPath)
	if !ok || !r.sameRoot(n.pid) || !r.valid(n) {
		return
	}
	var st unix.Stat_t
	if above, _ := splitPath(to); unix.Stat(above, &st) != nil || st.Dev != r.device {
		return // EXDEV is the right answer
	}
	if c.flags&unix.RENAME_NOREPLACE != 0 && unix.Lstat(to, &st) == nil {
		return
	}
	if fromHere {
		r.makePlain(from)
	}
	if exchange && r.isDirectory(to) {
		r.makePlain(to)
	}
}

func (r *renamer) isDirectory(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Dev == r.device
}

// sameRoot reports whether the caller resolves paths from the guest's own root;
// after a chroot the paths below would name something else.
func (r *renamer) sameRoot(pid uint32) bool {
	var st unix.Stat_t
	return unix.Stat(procPath(pid, "root"), &st) == nil && st.Dev == r.root.Dev && st.Ino == r.root.Ino
}

// callerPath reads a path argument and resolves it through /proc, so that it
// names the same file for the guest as for the caller.
func callerPath(pid uint32, dirfd int32, address uint64) (string, bool) {
	path, ok := callerString(pid, address)
	if !ok || path == "" {
		return "", false
	}
	absolute := path[0] == '/'
	path = strings.TrimRight(path, "/")
	// Not filepath.Join, which gets "link/.." wrong.
	if name := path[strings.LastIndexByte(path, '/')+1:]; name == "" || name == "." || name == ".." {
		return "", false // the kernel refuses these
	}
	switch {
	case absolute:
		return path, true // resolved from the same root, see sameRoot
	case dirfd == unix.AT_FDCWD:
		return procPath(pid, "cwd") + "/" + path, true
	}
	return procPath(pid, "fd/"+strconv.Itoa(int(dirfd))) + "/" + path, true
}

func procPath(pid uint32, name string) string {
	return "/proc/" + strconv.FormatUint(uint64(pid), 10) + "/" + name
}

// callerString reads a C string from the caller's memory, page by page: the
// page after its last one may not exist.
func callerString(pid uint32, address uint64) (string, bool) {
	const page = 4096
	mem, err := unix.Open(procPath(pid, "mem"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(mem)
	var text []byte
	buf := make([]byte, page)
	for len(text) < unix.PathMax {
		n, err := unix.Pread(mem, buf[:page-address%page], int64(address))
		if err != nil || n <= 0 {
			return "", false
		}
		if end := bytes.IndexByte(buf[:n], 0); end >= 0 {
			return string(append(text, buf[:end]...)), true
		}
		text = append(text, buf[:n]...)
		address += uint64(n)
	}
	return "", false
}
