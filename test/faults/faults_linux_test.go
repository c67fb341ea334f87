// Package faults shows what litterbox does when something goes wrong below it:
// records that a crash or a disk has damaged, disks that are full or read-only,
// system calls that fail. Nothing that was committed may be lost, unaffected
// sandboxes go on, and the next command repairs the rest or names what repairs it.
//
// Start reading at TestDamagedRecords.
package faults

import (
	"os"
	"strconv"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

func itoa(n int) string { return strconv.Itoa(n) }
