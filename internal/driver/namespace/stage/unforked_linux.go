package stage

import "syscall"

// unforked runs do, which opens a file of the sandbox's root for writing and
// closes it, while this process forks no child: until it executes a program, a
// child has copies of all descriptors, and the kernel makes no mount read-only
// while a file in it is open for writing (EBUSY, mount_setattr(2)).
func unforked(do func() error) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return do()
}
