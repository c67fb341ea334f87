package fsmonitor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzMounts lets anything be mounted anywhere: the paths told to git are in
// the workspace.
func FuzzMounts(f *testing.F) {
	f.Add("31 23 0:28 / /src/here/cache rw,relatime - tmpfs tmpfs rw,mode=755\n30 1 8:1 / /src rw - ext4 /dev/sda1 rw\n", "/src/here")
	f.Add("31 23 0:28 / /src/with\\040blank/a\\134b rw - tmpfs tmpfs rw\n", "/src/with blank")
	f.Add("31 23 0:28 /\n", "/src")
	f.Add("1 2 3 / /w/ rw\n1 2 3 / /w//x rw", "/w")
	f.Fuzz(func(t *testing.T, mountinfo, workspace string) {
		path := filepath.Join(t.TempDir(), "mountinfo")
		if err := os.WriteFile(path, []byte(mountinfo), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := mountedBelow(path, workspace)
		if err != nil {
			return
		}
		for _, name := range found {
			if strings.TrimLeft(name, "/") == "" { // git would take it for the whole workspace
				t.Errorf("%q below %q gives %q", mountinfo, workspace, found)
			}
		}
	})
}
