package payload_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
)

// content reads a program twice: an upload that was cut off begins again.
func content(t *testing.T, program payload.Program) []byte {
	t.Helper()
	var all []byte
	for range 2 {
		reader, err := program.Open()
		if err != nil {
			t.Fatal(err)
		}
		if all, err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
		if sum := sha256.Sum256(all); hex.EncodeToString(sum[:]) != program.ID || int64(len(all)) != program.Size {
			t.Errorf("%d bytes with SHA-256 %x, said were %d with %s", len(all), sum, program.Size, program.ID)
		}
	}
	return all
}

// A program that carries none is an outpost itself, for its own kind of machine.
func TestOutpostOfThisProgram(t *testing.T) {
	t.Setenv("LITTERBOX_OUTPOST_"+strings.ToUpper(runtime.GOARCH), "")
	program, err := payload.Outpost(runtime.GOOS, runtime.GOARCH)
	if runtime.GOOS == "linux" {
		if err != nil {
			t.Fatal(err)
		}
		if all := content(t, program); !strings.HasPrefix(string(all[:4]), "\x7fELF") {
			t.Error("it is not a program")
		}
	}
	for _, other := range [][2]string{{"linux", "riscv64"}, {"darwin", "arm64"}, {"", ""}} {
		if _, err := payload.Outpost(other[0], other[1]); fault.KindOf(err) != fault.Unsupported || fault.HintOf(err) == "" {
			t.Errorf("for %v: %v", other, err)
		}
	}
}

// A keeper finds those that the user's program has unpacked, and takes no other
// content.
func TestOutpostHanded(t *testing.T) {
	dir, text := t.TempDir(), "the outpost of arm64"
	sum := sha256.Sum256([]byte(text))
	path := filepath.Join(dir, "litterbox-outpost-"+hex.EncodeToString(sum[:]))
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LITTERBOX_OUTPOST_ARM64", path)
	program, err := payload.Outpost("linux", "arm64")
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, program); string(got) != text {
		t.Errorf("it is %q", got)
	}
	if got, err := payload.Outposts(dir); err != nil || len(got) != 1 || got[0] != "LITTERBOX_OUTPOST_ARM64="+path {
		t.Errorf("handed on are %q, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("something else"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := payload.Outpost("linux", "arm64"); err == nil {
		t.Error("changed content is taken")
	}
}
