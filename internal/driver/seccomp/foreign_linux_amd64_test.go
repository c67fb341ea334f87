package seccomp_test

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// foreignCall enters the kernel as a 32-bit program would: getpid by int 0x80. Or it
// faults, as that does on a kernel without such an entry.
func foreignCall(fault bool) int {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		fmt.Println(err)
		return 125
	}
	code := []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20 (__NR_getpid of i386)
		0xcd, 0x80, // int 0x80
		0xc3, // ret
	}
	if fault {
		code = []byte{0xf4} // hlt
	}
	copy(page, code)
	// A Go function value points to a word that holds the code's address.
	entry := &page[0]
	function := unsafe.Pointer(&entry)
	(*(*func())(unsafe.Pointer(&function)))()
	fmt.Println("came back")
	return 0
}
