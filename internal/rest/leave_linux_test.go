package rest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A page that differs from its file stays; one that does not is given back.
func TestLeaveKeepsWhatDiffers(t *testing.T) {
	size := 4 * os.Getpagesize()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, bytes.Repeat([]byte("f"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	mapped := func() []byte {
		t.Helper()
		pages, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(pages) })
		return pages
	}
	differs, same := mapped(), mapped()
	differs[size-1] = 'x' // as a linker relocates
	for _, pages := range [][]byte{differs, same} {
		if pages[0] != 'f' {
			t.Fatal("the file is not mapped")
		}
		if err := unix.Mprotect(pages, unix.PROT_READ); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	if differs[size-1] != 'x' {
		t.Error("a page that differed is the file's again")
	}
	if n := resident(t, same); n != 0 {
		t.Errorf("%d bytes of the file stay", n)
	}
	if n := resident(t, differs); n == 0 {
		t.Error("the control: nothing of the mapping that differs is there")
	}
	if !bytes.Equal(same, bytes.Repeat([]byte("f"), size)) {
		t.Error("the file reads otherwise afterwards")
	}
}

// resident is how many bytes of a mapping this process has, by Rss in its smaps.
func resident(t *testing.T, pages []byte) (kilobytes int) {
	t.Helper()
	content, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	from := uintptr(unsafe.Pointer(&pages[0]))
	_, rest, found := bytes.Cut(content, fmt.Appendf(nil, "%08x-", from))
	_, rest, hasRss := bytes.Cut(rest, []byte("\nRss:"))
	if !found || !hasRss {
		t.Fatalf("no mapping at %x", from)
	}
	if _, err := fmt.Sscan(string(rest), &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes
}

func TestUnchanged(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-00600000 r-xp 00000000 08:01 42 /usr/bin/program
Rss:                 512 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
00600000-00700000 r--p 00200000 08:01 42 /usr/bin/program
Anonymous:             4 kB
Swap:                  0 kB
00700000-00800000 r--p 00300000 08:01 42 /usr/bin/program
Anonymous:             0 kB
Swap:                  4 kB
00800000-00900000 rw-p 00400000 08:01 42 /usr/bin/program
Anonymous:             0 kB
00900000-00a00000 r--s 00000000 08:01 43 /shared file
Anonymous:             0 kB
7f0000000000-7f0000100000 r--p 00000000 00:00 0
Anonymous:             0 kB
7f0000200000-7f0000300000 r--p 00000000 08:01 44 /a path with spaces (deleted)
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x600000}, {0x7f0000200000, 0x7f0000300000}}
	if got := unchanged([]byte(smaps)); !slices.Equal(want, got) {
		t.Errorf("%x, want %x", got, want)
	}
}
