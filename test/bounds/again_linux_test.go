package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// What fails the second time fails the run, and shows what it printed.
func TestAgain(t *testing.T) {
	kept, scratch := t.TempDir(), t.TempDir()
	for pkg, script := range map[string]string{
		"test/soak":   "echo of no interest",
		"test/bounds": `test -e again.go && echo "--- FAIL: TestIt" "$@"; exit 1`,
	} {
		binary := filepath.Join(scratch, "binary")
		if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		func() {
			t.Chdir(filepath.Join("..", "..", pkg))
			defer t.Chdir("../bounds")
			if err := keep(kept, binary); err != nil {
				t.Fatal(err)
			}
		}()
		if err := os.Remove(binary); err != nil { // as go test does
			t.Fatal(err)
		}
	}
	took, report := filepath.Join(scratch, "took"), filepath.Join(scratch, "report")
	lines := `{"package":"test/soak","seconds":1}` + "\n" + `{"package":"test/bounds","seconds":2}` + "\n"
	if err := os.WriteFile(took, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	var said bytes.Buffer
	code := again(&said, report, took, kept, 1, []string{"internal/redact", "test/soak", "test/bounds"})
	want := regexp.MustCompile(`^--- FAIL: TestIt -test\.paniconexit0 -test\.count=1 -test\.timeout=30m0s\nexit status 1\nFAIL\ttest/bounds\t[\d.]+s\nok  \ttest/soak\t[\d.]+s\n$`)
	if code != 1 || !want.MatchString(said.String()) {
		t.Errorf("exit code %d, and it says\n%s", code, &said)
	}
	if all, err := read(report); err != nil || len(all) != 2 || all[0].Package != "test/bounds" {
		t.Errorf("noted: %+v, %v", all, err)
	}
}
