package main

import (
	"fmt"
	"os"
	"strconv"
)

// bounds is what one package may take, in bytes. They are far above what any
// package needs, and far below what would harm a machine.
type bounds struct {
	memory, disk, output int64
}

// limits returns the bounds in force. LITTERBOX_TEST_MEMORY and LITTERBOX_TEST_DISK,
// in MiB, replace them for a machine or a package that is special.
func limits() bounds {
	return bounds{
		// test/attack takes some 7 GiB under the race detector, nearly all of it
		// in the test itself.
		memory: fromEnv("LITTERBOX_TEST_MEMORY", 12<<10) << 20,
		disk:   fromEnv("LITTERBOX_TEST_DISK", 16<<10) << 20,
		output: fromEnv("LITTERBOX_TEST_OUTPUT", 64) << 20,
	}
}

func fromEnv(name string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// exceeded says which bound was exceeded; empty if none was.
func (b bounds) exceeded(t taken) string {
	for _, one := range []struct {
		what      string
		is, bound int64
	}{{"memory", t.Memory, b.memory}, {"disk", t.Disk, b.disk}, {"output", t.Output, b.output}} {
		if one.is > one.bound {
			return fmt.Sprintf("takes %d MiB of %s, and may take %d", one.is>>20, one.what, one.bound>>20)
		}
	}
	return ""
}

// taken is the most that a package took, and what it left.
type taken struct {
	Package  string   `json:"package"`
	Memory   int64    `json:"memory"`
	Disk     int64    `json:"disk"`
	Output   int64    `json:"output"`
	Seconds  float64  `json:"seconds"`
	Exceeded string   `json:"exceeded,omitempty"`
	Left     []string `json:"left,omitempty"`
}
