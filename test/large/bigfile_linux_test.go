package large_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file of 2,200,000,000 bytes, the same each time: lines of
// which none is like another, and zeros, which take less of the disk.
const write = `{ seq 1 20000000; head -c 1700000000 /dev/zero; seq 20000001 60000000; } | head -c 2200000000 >big`

// A file of more than two gigabytes, which is more than fits into 31 bits.
func TestLargeFile(t *testing.T) {
	h := large(t)
	h.duplicate()
	h.litterbox("create", "box")
	h.both("make a file of 2.2 GB", write)
	h.both("change a byte inside of it", `printf X | dd of=big bs=1 seek=2147483650 conv=notrunc 2>/dev/null`)
	h.both("append to it", "echo more >>big")
	clone := h.clone()
	h.run(h.Dir, "cmp", filepath.Join(clone, "big"), filepath.Join(h.copy, "big"))
	h.shell(h.Dir, "rm -rf clone")

	// A sandbox of which the file is part of the base.
	h.litterbox("create", "next", "--base", "box")
	const change = `printf Y | dd of=big bs=1 seek=100 conv=notrunc 2>/dev/null`
	h.litterbox("exec", "next", "--", "sh", "-ec", change)
	h.shell(h.copy, change)
	want := h.shell(h.copy, "git hash-object big")
	if have := h.Git("rev-parse", "next:big"); have != want {
		t.Errorf("the file is %s, and %s in the branch", want, have)
	}

	// The agent's own commit of it.
	h.litterbox("exec", "next", "--", "sh", "-ec", `
		git config user.name Agent; git config user.email agent@example.com
		echo end >>big; git add -A; git commit -q -m 'the agent: end'`)
	h.shell(h.copy, "echo end >>big")
	want = h.shell(h.copy, "git hash-object big")
	if have := h.Git("rev-parse", "next:big"); have != want {
		t.Errorf("after the agent's commit the file is %s, and %s in the branch", want, have)
	}
	if subject := h.Git("log", "-1", "--skip=1", "--format=%s", "next"); subject != "the agent: end" {
		t.Errorf("the commit below the one of the command is %q", subject)
	}
	h.litterbox("delete", "--force", "next")
	h.shell(h.copy, "git checkout -q -- big")
	h.merge()
	if size := h.shell(h.Repo, "stat -c %s big"); !strings.HasPrefix(size, "22000000") {
		t.Errorf("the merged file has %s bytes", size)
	}
	h.run(h.Dir, "cmp", filepath.Join(h.Repo, "big"), filepath.Join(h.copy, "big"))
}
