package secret

import (
	"os"

	"golang.org/x/sys/unix"
)

// memory holds values outside of Go's heap, which moves and copies its content:
// locked where the system allows, in no core dump, and wiped at its end. It is
// not safe for concurrent use.
type memory struct {
	chunks [][]byte
	free   []byte // the rest of the last chunk
}

// alloc gives n bytes that live as long as the memory.
func (m *memory) alloc(n int) []byte {
	if n > len(m.free) {
		page := os.Getpagesize()
		size := (n + page - 1) / page * page
		chunk, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return make([]byte, n) // there is no memory for pages; then the heap's must do
		}
		_ = unix.Mlock(chunk) // RLIMIT_MEMLOCK may be too small
		keepOutOfDumps(chunk)
		m.chunks = append(m.chunks, chunk)
		m.free = chunk
	}
	given := m.free[:n:n]
	m.free = m.free[n:]
	return given
}

// wipe clears the memory and gives it back. Memory from alloc must no longer be
// used.
func (m *memory) wipe() {
	for _, chunk := range m.chunks {
		clear(chunk)
		_ = unix.Munmap(chunk) // for memory from Mmap it cannot fail
	}
	m.chunks, m.free = nil, nil
}

// Kept is a value outside of Go's heap.
type Kept struct {
	memory memory
	value  []byte
}

// Keep takes a copy of a value.
func Keep(value []byte) *Kept {
	k := &Kept{}
	k.value = k.memory.alloc(len(value))
	copy(k.value, value)
	return k
}

// Bytes is the value, until it is wiped.
func (k *Kept) Bytes() []byte { return k.value }

// Wipe clears it.
func (k *Kept) Wipe() {
	k.value = nil
	k.memory.wipe()
}
