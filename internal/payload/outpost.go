package payload

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Program is a program on its way to another machine. It is copied from here and
// never executed here.
type Program struct {
	ID   string // SHA-256 of its content, in hexadecimal digits
	Size int64  // bytes
	// Open reads the content, any number of times.
	Open func() (io.ReadCloser, error)
}

// OutpostName is argv[0] of an outpost, which tells the program what it is: where
// no argv[0] can be given, the file must have this name.
const OutpostName = "litterbox-guest"

const outpostName = "litterbox-outpost-"

// outpostArchitectures returns those of the machines that an outpost is carried for.
func outpostArchitectures() []string { return []string{"amd64", "arm64"} }

// Outpost returns the program of outposts (cmd/litterbox-outpost) for machines of
// a system and an architecture, in Go's names. A program built without them is
// one itself, only for its own system and architecture.
func Outpost(system, architecture string) (Program, error) {
	if system == "linux" {
		if packed, id := embeddedOutpost(architecture); packed != nil {
			return unpacking(packed, id), nil
		}
		if path := os.Getenv(outpostVariable(architecture)); path != "" {
			return handedOutpost(path)
		}
		if system == runtime.GOOS && architecture == runtime.GOARCH {
			return running()
		}
	}
	return Program{}, fault.New(fault.Unsupported, "cannot stand in a machine of %s/%s: this program carries no outpost for it", system, architecture).
		WithHint("litterbox version  # releases carry outposts for linux/amd64 and linux/arm64, go install builds none")
}

// unpacking returns a program carried in this one.
func unpacking(packed []byte, id string) Program {
	// A gzip file ends with the size of its content, modulo 2³² (RFC 1952).
	size := binary.LittleEndian.Uint32(packed[len(packed)-4:])
	return Program{ID: id, Size: int64(size), Open: func() (io.ReadCloser, error) { return gzip.NewReader(bytes.NewReader(packed)) }}
}

// handedOutpost returns a program that the parent of this one has unpacked.
func handedOutpost(path string) (Program, error) {
	id := strings.TrimPrefix(filepath.Base(path), outpostName)
	open := func() (*os.File, error) {
		file, err := verified(path, id)
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot open the program %q", path)
		}
		return file, nil
	}
	file, err := open()
	if err != nil {
		return Program{}, err
	}
	info, err := file.Stat()
	if err = errors.Join(err, file.Close()); err != nil {
		return Program{}, fault.Wrap(fault.Unavailable, err, "cannot open the program %q", path)
	}
	return Program{ID: id, Size: info.Size(), Open: func() (io.ReadCloser, error) { return open() }}, nil
}

// running returns this very program.
func running() (Program, error) {
	open := func() (*os.File, error) {
		file, err := os.Open("/proc/self/exe")
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot open our own program")
		}
		return file, nil
	}
	file, err := open()
	if err != nil {
		return Program{}, err
	}
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return Program{}, fault.Wrap(fault.Unavailable, err, "cannot read our own program")
	}
	return Program{ID: hex.EncodeToString(sum.Sum(nil)), Size: size, Open: func() (io.ReadCloser, error) { return open() }}, nil
}

// outpostVariable tells a keeper, and the full program, which carry nothing, where
// the outpost for an architecture was unpacked.
func outpostVariable(architecture string) string {
	return "LITTERBOX_OUTPOST_" + strings.ToUpper(architecture)
}

// Outposts unpacks the outposts below dir, unless that was done before, and
// returns the variables that lead this program's children to them. It returns
// none if this program has none.
func Outposts(dir string) ([]string, error) {
	var variables []string
	for _, architecture := range outpostArchitectures() {
		variable := outpostVariable(architecture)
		packed, id := embeddedOutpost(architecture)
		if packed == nil {
			if path := os.Getenv(variable); path != "" {
				variables = append(variables, variable+"="+path)
			}
			continue
		}
		// Its content is verified on use.
		path := filepath.Join(dir, "bin", outpostName+id)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			err = unpack(path, packed)
			if err != nil {
				return nil, fault.Wrap(fault.Unavailable, err, "cannot unpack the program %s", outpostName+id)
			}
		}
		variables = append(variables, variable+"="+path)
	}
	return variables, nil
}
