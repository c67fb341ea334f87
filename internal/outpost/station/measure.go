package station

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// measure reports what the machine has left, which lets hosts choose one of several.
func measure(status *outpost.Status) {
	status.Memory, status.Processors, status.Load = -1, runtime.NumCPU(), -1
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		if _, err := fmt.Sscan(string(data), &status.Load); err != nil {
			status.Load = -1
		}
	}
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var kib int64
		if rest, is := strings.CutPrefix(lines.Text(), "MemAvailable:"); is {
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				status.Memory = kib << 10
			}
			return
		}
	}
}
