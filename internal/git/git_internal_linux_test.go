package git

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Ctrl-C is sent to the whole foreground process group: our git, if it
// belonged to it, would die in the middle of a commit.
func TestCtrlCDoesNotReachGit(t *testing.T) {
	dir := t.TempDir()
	// The fifth field of stat is the process group, proc_pid_stat(5).
	script := "#!/bin/sh\ncut -d' ' -f5 /proc/$$/stat\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, plain := range []bool{false, true} {
		line, err := Command{Dir: dir, Plain: plain, Args: []string{"version"}}.Line(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		group, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if shares := group == syscall.Getpgrp(); shares != plain {
			t.Errorf("git of the user's own: %t; in our process group: %t", plain, shares)
		}
	}
}
