package namespace

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzMachineFiles puts anything into the files of /proc about a guest's
// memory, death and ids, and into logind.conf.
func FuzzMachineFiles(f *testing.F) {
	f.Add("Name:\tlitterbox-guest\nState:\tS (sleeping)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\nSigBlk:\t0000000000000000\n")
	f.Add("SigPnd:\nShdPnd: 0x100\nSigPnd:\tffffffffffffffffff\n")
	f.Add("         0          0 4294967295\n")
	f.Add("0 100000 65536\n 1073741824 1073741824 65536\n9223372036854775807 0 9223372036854775807\n")
	f.Add("556817a5e000-7ffdd0c26000 ---p 00000000 00:00 0                          [rollup]\nRss:                1708 kB\nPss:                 166 kB\n")
	f.Add("Pss: 9223372036854775807 kB\nPss: -1 kB\n")
	f.Add("[Login]\nKillUserProcesses = yes\n;x\n#KillExcludeUsers=root\n[Other]\nKillOnlyUsers==\n")
	f.Fuzz(func(t *testing.T, text string) {
		if killed([]byte(text)) && !strings.Contains(text, "Pnd:") {
			t.Errorf("%q: it counts as killed", text)
		}
		if n, ok := pss([]byte(text)); ok && (n < 0 || n > math.MaxInt64>>10<<10) {
			t.Errorf("%q: %d bytes", text, n)
		}
		holdsShift(text)
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "etc"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(root, "etc/systemd"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "etc/systemd/logind.conf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if len(logout(root, "me")) > 0 && !strings.Contains(text, "KillUserProcesses") {
			t.Errorf("%q: logging out ends sandboxes", text)
		}
	})
}
