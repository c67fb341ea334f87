package hostile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// BenchmarkRemove removes 10,000 small files that are on the disk, beside what
// os.RemoveAll takes for them. TMPDIR chooses the disk.
func BenchmarkRemove(b *testing.B) {
	for name, remove := range map[string]func(string) error{"hostile": hostile.Remove, "os": os.RemoveAll} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				dir := filepath.Join(b.TempDir(), "tree")
				for i := range 10_000 {
					in := filepath.Join(dir, fmt.Sprint(i/100))
					if i%100 == 0 {
						if err := os.MkdirAll(in, 0o700); err != nil {
							b.Fatal(err)
						}
					}
					if err := os.WriteFile(filepath.Join(in, fmt.Sprint(i)), []byte("some text"), 0o600); err != nil {
						b.Fatal(err)
					}
				}
				unix.Sync() // blocks that are not yet assigned are not freed either
				b.StartTimer()
				if err := remove(dir); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
