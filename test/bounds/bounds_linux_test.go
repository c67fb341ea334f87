package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestMain is also the watched test binary, and the program that watches.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		main()
	}
	switch os.Getenv("BOUNDS_TEST_AS") {
	case "":
		os.Exit(m.Run())
	case "child":
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "BOUNDS_TEST_AS=memory")
		fmt.Println(cmd.Run())
	case "memory":
		hold := make([]byte, 200<<20)
		for i := 0; i < len(hold); i += 4096 {
			hold[i] = 1
		}
		time.Sleep(time.Hour) // until it is ended
		fmt.Println(hold[0])
	case "disk":
		path := filepath.Join(os.TempDir(), "big")
		if err := os.WriteFile(path, make([]byte, 20<<20), 0o600); err != nil {
			panic(err)
		}
	case "output":
		for line := bytes.Repeat([]byte{'.'}, 1<<10); ; {
			if _, err := os.Stdout.Write(line); err != nil {
				return
			}
		}
	case "exit":
		os.Exit(3)
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		as, exceeded string
		code         int
		left         string
	}{
		{as: "nothing"},
		{as: "exit", code: 3},
		{as: "memory", code: 1, exceeded: "MiB of memory, and may take 100"},
		{as: "child", code: 1, exceeded: "MiB of memory, and may take 100"},
		{as: "disk", code: 1, exceeded: "takes 20 MiB of disk, and may take 10", left: "big (20480 KiB)"},
		{as: "output", code: 1, exceeded: "MiB of output, and may take 1"},
	} {
		t.Run(c.as, func(t *testing.T) {
			for name, value := range map[string]string{
				"BOUNDS_TEST_AS": c.as, "LITTERBOX_TEST_MEMORY": "100", "LITTERBOX_TEST_DISK": "10", "LITTERBOX_TEST_OUTPUT": "1",
				"TMPDIR": t.TempDir(),
			} {
				t.Setenv(name, value)
			}
			stdout := os.Stdout
			os.Stdout, _ = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			report := filepath.Join(t.TempDir(), "report")
			code := run(report, []string{"/proc/self/exe"})
			os.Stdout = stdout
			all, err := read(report)
			if err != nil || len(all) != 1 {
				t.Fatalf("noted: %+v, %v", all, err)
			}
			got := all[0]
			if code != c.code || got.Package != "test/bounds" || !strings.HasSuffix(got.Exceeded, c.exceeded) || (got.Exceeded == "") != (c.exceeded == "") {
				t.Errorf("exit code %d, %+v", code, got)
			}
			if strings.Join(got.Left, ", ") != c.left {
				t.Errorf("left: %q", got.Left)
			}
			if entries, err := os.ReadDir(os.TempDir()); err != nil || len(entries) > 0 {
				t.Errorf("the directory of the package is not removed: %v, %v", entries, err)
			}
			var said bytes.Buffer
			if code := left(&said, report); (code == 1) != (c.exceeded != "") || (c.exceeded != "") != strings.Contains(said.String(), "FAIL: test/bounds takes ") {
				t.Errorf("at the end it says, with code %d:\n%s", code, &said)
			}
		})
	}
}

// CI requires what the summary calls missing.
func TestToolsAreThoseOfCI(t *testing.T) {
	text, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	known := tools()
	for _, list := range regexp.MustCompile(`(?m)LITTERBOX_TEST_REQUIRE\+?=([\w,-]+)$`).FindAllStringSubmatch(string(text), -1) {
		for _, name := range strings.FieldsFunc(list[1], func(r rune) bool { return r == ',' }) {
			if name != "namespace" && name != "git-suite" && known[name] == "" {
				t.Errorf("%s is demanded by .ci/run, and bounds does not know its package", name)
			}
			delete(known, name)
		}
	}
	if len(known) > 0 {
		t.Errorf("%v are not demanded by .ci/run", known)
	}
}

func TestNeedNamesWhatIsMissing(t *testing.T) {
	missing, packages := absent(map[string]string{"no-such-program": "one two", "sh": "dash"})
	if strings.Join(missing, " ") != "no-such-program" || strings.Join(packages, " ") != "one two" {
		t.Errorf("missing are %q of %q", missing, packages)
	}
	var said bytes.Buffer
	if code := need(&said, filepath.Join(t.TempDir(), "none")); code != 0 || !strings.Contains(said.String(), "tests need about") {
		t.Errorf("%d:\n%s", code, &said)
	}
}
