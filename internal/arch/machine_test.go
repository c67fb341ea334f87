package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// walks finds code that looks at a whole machine. On a developer's machine
// that is hours of reading, or more than its memory.
var walks = regexp.MustCompile(`find / |WalkDir\("/"|(?:grep -[a-zA-Z]*r[a-zA-Z]*|du|ls -[a-zA-Z]*R[a-zA-Z]*|find) [^|;"` + "`" + `]*(?: /| /home| /root)(?: |"|` + "`" + `|$)|find /sys/fs/cgroup|WalkDir\("/sys`)

// machineWalks returns the lines that do, and why they may.
func machineWalks() map[string]string {
	return map[string]string{
		"test/image/image_linux_test.go":    "inside an image of the test's own",
		"test/attack/state_linux_test.go":   "inside a sandbox, without the machine's own directories",
		"test/attack/files_linux_test.go":   "inside a sandbox",
		"test/attack/history_linux_test.go": "inside a sandbox, without the machine's own directories",
		"test/vm/story.sh":                  "on a machine of the test's own",
		"internal/arch/machine_test.go":     "the rule itself",
	}
}

// Tests look only at what they have made.
func TestNoTestWalksTheMachine(t *testing.T) {
	dir := root(t)
	for _, file := range files(t, dir) {
		if !strings.HasPrefix(file, "test/") && !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if found := walks.FindString(string(text)); found != "" && machineWalks()[file] == "" {
			t.Errorf("%s looks at the whole machine: %q", file, found)
		}
	}
	for text, walking := range map[string]bool{
		`find / -name x`: true, "grep -rs x /home": true, `ls -R "+w.State+"`: false, "find /dev -type b": false, "find . -name x": false,
	} {
		if walks.MatchString(text) != walking {
			t.Errorf("%q: walking %t", text, !walking)
		}
	}
}
