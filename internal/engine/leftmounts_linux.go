package engine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// mountsBelow lists the mounts in or below dir in this process's mount namespace,
// the innermost first. Sandboxes mount in namespaces of their own.
func mountsBelow(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line)) // proc(5): the fifth is the mount point
		if len(fields) < 5 {
			continue
		}
		if point := unescapeMount(fields[4]); point == dir || strings.HasPrefix(point, dir+"/") {
			found = append(found, point)
		}
	}
	slices.Reverse(found)
	return found, nil
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// strayMounts are mounts in the directories of sandboxes that have no record.
func (e *Engine) strayMounts(known func(id string) bool) ([]Leftover, error) {
	root := filepath.Dir(e.Store.SandboxDir("x"))
	points, err := mountsBelow(root)
	if err != nil {
		return nil, err
	}
	var found []Leftover
	for _, point := range points {
		id, _, _ := strings.Cut(strings.TrimPrefix(point, root+"/"), "/")
		if point == root || known(id) {
			continue
		}
		found = append(found, Leftover{What: "a mount of a sandbox that is gone", Where: point, fix: func(context.Context) error {
			// Detached, so that processes still in it keep their files.
			if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot unmount %q", point).WithHint("umount --lazy %s", point)
			}
			return nil
		}})
	}
	return found, nil
}
