package journal_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/service/journal"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 890e6, time.UTC)

func open(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}

func read(t *testing.T, root *os.Root, from int64) (lines []journal.Line, next int64) {
	t.Helper()
	next, err := journal.Scan(root, "web", from, func(l journal.Line) bool { lines = append(lines, l); return true })
	if err != nil {
		t.Fatal(err)
	}
	return lines, next
}

func texts(lines []journal.Line) (texts []string) {
	for _, line := range lines {
		texts = append(texts, line.Text)
	}
	return texts
}

func TestLines(t *testing.T) {
	root, dir := open(t)
	j := journal.New(dir, "web")
	j.Note(at, "started (pid %d)", 7)
	j.Print(at, []byte("one\ntw"))
	j.Print(at.Add(time.Second), []byte("o\r\nleft over"))
	lines, _ := read(t, root, 0)
	want := []journal.Line{{Time: at, Own: true, Text: "started (pid 7)"}, {Time: at, Text: "one"}, {Time: at.Add(time.Second), Text: "two"}}
	if diff := cmp.Diff(want, lines, cmpopts.IgnoreFields(journal.Line{}, "Offset", "Next")); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	j.Flush(at)
	if lines, _ = read(t, root, lines[2].Next); len(lines) != 1 || lines[0].Text != "left over" {
		t.Errorf("after the flush: %+v", lines)
	}
	content, err := os.ReadFile(filepath.Join(dir, "web.0000000000000000.log"))
	if err != nil || !strings.HasPrefix(string(content), "2026-03-04T05:06:07.890Z * started (pid 7)\n2026-03-04T05:06:07.890Z | one\n") {
		t.Errorf("%q, %v", content, err)
	}
}

// A line without an end is cut, so that it never fills the memory.
func TestLongLine(t *testing.T) {
	root, dir := open(t)
	j := journal.New(dir, "web")
	j.Print(at, []byte(strings.Repeat("a", 20<<10)+"\nb\n"))
	lines, _ := read(t, root, 0)
	var lengths []int
	for _, line := range lines {
		lengths = append(lengths, len(line.Text))
	}
	if diff := cmp.Diff([]int{8 << 10, 8 << 10, 4 << 10, 1}, lengths); diff != "" {
		t.Errorf("lengths (-want +got):\n%s", diff)
	}
}

// A flood keeps the newest lines in less than two files, with offsets that
// count everything.
func TestFloodIsBounded(t *testing.T) {
	root, dir := open(t)
	j := journal.New(dir, "web")
	line := strings.Repeat("x", 990)
	for i := range 20000 {
		j.Print(at, fmt.Appendf(nil, "%06d%s\n", i, line))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if len(entries) != 2 || total > 2*journal.FileSize+(1<<20) {
		t.Errorf("%d files with %d bytes", len(entries), total)
	}
	lines, next := read(t, root, 0)
	if len(lines) < journal.FileSize/1100 || !strings.HasPrefix(lines[len(lines)-1].Text, "019999") || next < 20000*1000 {
		t.Errorf("%d lines, next %d", len(lines), next)
	}
	for i := 1; i < len(lines); i++ {
		if lines[i].Offset != lines[i-1].Next {
			t.Fatalf("a gap between lines %d and %d", i-1, i)
		}
	}
}

// Another guest goes on in the same file, and offsets stay valid.
func TestReopen(t *testing.T) {
	root, dir := open(t)
	journal.New(dir, "web").Print(at, []byte("a\n"))
	_, next := read(t, root, 0)
	journal.New(dir, "web").Print(at, []byte("b\n"))
	if lines, _ := read(t, root, next); cmp.Diff([]string{"b"}, texts(lines)) != "" {
		t.Errorf("%q", texts(lines))
	}
}

func TestFind(t *testing.T) {
	root, dir := open(t)
	j := journal.New(dir, "web")
	for i := range 10 {
		j.Print(at.Add(time.Duration(i)*time.Second), fmt.Appendf(nil, "%d\n", i))
	}
	for _, c := range []struct {
		tail  int
		since time.Time
		want  string
	}{
		{-1, time.Time{}, "0123456789"}, {3, time.Time{}, "789"}, {0, time.Time{}, ""}, {100, time.Time{}, "0123456789"},
		{-1, at.Add(7 * time.Second), "789"}, {2, at.Add(5 * time.Second), "89"}, {5, at.Add(8 * time.Second), "89"},
		{-1, at.Add(time.Hour), ""}, {10, time.Time{}, "0123456789"}, {9, time.Time{}, "123456789"},
	} {
		from, err := journal.Find(root, "web", c.tail, c.since)
		if err != nil {
			t.Fatal(err)
		}
		lines, _ := read(t, root, from)
		if got := strings.Join(texts(lines), ""); got != c.want {
			t.Errorf("tail %d since %v: %q, want %q", c.tail, c.since, got, c.want)
		}
	}
}

func TestFollow(t *testing.T) {
	root, dir := open(t)
	j := journal.New(dir, "web")
	changed := j.Changed()
	select {
	case <-changed:
		t.Fatal("changed before anything was printed")
	default:
	}
	go j.Print(at, []byte("a\n"))
	<-changed
	if lines, _ := read(t, root, 0); len(lines) != 1 {
		t.Errorf("%d lines", len(lines))
	}
}

// A deleted file is followed by another.
func TestDeleted(t *testing.T) {
	root, dir := open(t)
	j := journal.New(dir, "web")
	j.Print(at, []byte("a\n"))
	if err := os.Remove(filepath.Join(dir, "web.0000000000000000.log")); err != nil {
		t.Fatal(err)
	}
	j.Print(at, []byte("b\n"))
	if lines, _ := read(t, root, 0); cmp.Diff([]string{"b"}, texts(lines)) != "" {
		t.Errorf("%q", texts(lines))
	}
}

// Nothing that a sandbox plants in the directory leads out of it, hangs a reader,
// or makes it read for ever.
func TestHostileDirectory(t *testing.T) {
	root, dir := open(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := func(base int) string { return filepath.Join(dir, fmt.Sprintf("web.%016d.log", base)) }
	if err := os.Symlink(secret, name(0)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(name(1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name(2), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name(3), []byte("no time\nx\x00\x1b[2J\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, odd := range []string{"web..log", "web.-1.log", "web.x.log", "web.99999999999999999999.log"} {
		if err := os.WriteFile(filepath.Join(dir, odd), []byte("odd\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines, _ := read(t, root, 0)
	if got := strings.Join(texts(lines[:min(2, len(lines))]), ","); got != "no time,x\x00\x1b[2J" {
		t.Errorf("%q", got)
	}
	// Enlarged without end, it shows the last output, and goes on.
	if err := os.Truncate(name(3), 1<<40); err != nil {
		t.Fatal(err)
	}
	huge, err := os.OpenFile(name(3), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = huge.WriteString("\nlast\n")
	}
	if err == nil {
		err = huge.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, next := read(t, root, 0)
	if last := lines[len(lines)-1]; last.Text != "last" || next != 3+1<<40+6 || len(lines) > 2*journal.FileSize/(64<<10)+2 {
		t.Errorf("of an enlarged file: %d lines, the last %q, next %d", len(lines), last.Text, next)
	}
	if from, err := journal.Find(root, "web", 1, time.Time{}); err != nil || from != 3+1<<40+1 {
		t.Errorf("its last line is at %d, %v", from, err)
	}
	if more, _ := read(t, root, next); len(more) != 0 {
		t.Errorf("after the end: %q", texts(more))
	}
	for _, line := range lines {
		if strings.Contains(line.Text, "secret") {
			t.Error("a link led out of the directory")
		}
	}
}

// Whatever a file holds, reading it ends, with offsets that go on.
func FuzzScan(f *testing.F) {
	f.Add([]byte("2026-03-04T05:06:07.890Z | a\n2026-03-04T05:06:07.890Z * b\n"), int64(0))
	f.Add([]byte("\n\n\x00\xff\n no end"), int64(3))
	f.Add(bytes.Repeat([]byte("x"), 100<<10), int64(-5))
	f.Fuzz(func(t *testing.T, content []byte, from int64) {
		root, dir := open(t)
		if err := os.WriteFile(filepath.Join(dir, "web.0000000000000000.log"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		next, err := journal.Scan(root, "web", from, func(l journal.Line) bool {
			if l.Next <= l.Offset || l.Offset < last {
				t.Fatalf("line from %d to %d after %d", l.Offset, l.Next, last)
			}
			last = l.Next
			return true
		})
		if err != nil || next < last || next > int64(len(content)) && next != from {
			t.Fatalf("next %d of %d, %v", next, len(content), err)
		}
	})
}
