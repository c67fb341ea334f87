//go:build unix

package outpost_test

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// BenchmarkStream is a transfer over one Unix socket.
func BenchmarkStream(b *testing.B) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range pair {
		file := os.NewFile(uintptr(fd), "end")
		if ends[i], err = net.FileConn(file); err != nil {
			b.Fatal(err)
		}
		file.Close()
	}
	block := make([]byte, 128<<10)
	answering := outpost.Accepted(ends[1], func(s *outpost.Stream) {
		for {
			if _, err := s.Write(block); err != nil {
				return
			}
		}
	})
	link := outpost.Dialled(ends[0])
	b.Cleanup(func() { link.Close(); _ = answering.Wait() })
	s, err := link.Open()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(1 << 20)
	buffer := make([]byte, 32<<10)
	for b.Loop() {
		if _, err := io.CopyBuffer(io.Discard, io.LimitReader(s, 1<<20), buffer); err != nil {
			b.Fatal(err)
		}
	}
}
