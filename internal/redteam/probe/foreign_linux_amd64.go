package probe

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// foreign calls unshare(CLONE_NEWUSER) through a kernel entry that a filter
// may have forgotten, and prints the result. It may not survive.
func foreign(args []string) (any, error) {
	switch args[0] {
	case "x32": // the same table, with a bit set: __X32_SYSCALL_BIT
		return outcomes{"x32": call(unix.SYS_UNSHARE|0x4000_0000, unix.CLONE_NEWUSER)}, nil
	case "int80":
		result, err := int80(310, unix.CLONE_NEWUSER) // unshare of i386
		if err != nil {
			return nil, err
		}
		if result < 0 {
			return outcomes{"int80": named(unix.Errno(-result))}, nil
		}
		return outcomes{"int80": "ok"}, nil
	case "none": // as int80 on a kernel without that entry: a general protection fault
		return outcomes{"none": "ok"}, enter([]byte{0xf4, 0xc3}) // hlt; ret
	}
	return nil, fmt.Errorf("no entry %q", args[0])
}

// int80 makes a system call as a 32-bit program does, from code of its own.
func int80(number, argument uint32) (int32, error) {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 0, err
	}
	result := (*int32)(unsafe.Pointer(&page[0]))
	address := uint64(uintptr(unsafe.Pointer(result)))
	code := []byte{0x53, 0xb8} // push rbx; mov eax, number
	code = append(code, byte(number), byte(number>>8), byte(number>>16), byte(number>>24))
	code = append(code, 0xbb) // mov ebx, argument
	code = append(code, byte(argument), byte(argument>>8), byte(argument>>16), byte(argument>>24))
	code = append(code, 0xcd, 0x80) // int 0x80
	code = append(code, 0x48, 0xb9) // mov rcx, address
	for shift := 0; shift < 64; shift += 8 {
		code = append(code, byte(address>>shift))
	}
	code = append(code, 0x89, 0x01, 0x5b, 0xc3) // mov [rcx], eax; pop rbx; ret
	err = enter(code)
	return *result, err
}

// enter runs machine code.
func enter(code []byte) error {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(page, code)
	// A Go function value points to a word that holds the code's address.
	entry := &page[0]
	function := unsafe.Pointer(&entry)
	(*(*func())(unsafe.Pointer(&function)))()
	return nil
}
