package attack_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// floodAttacks make much out of little: files without content, endless output,
// more files than anyone needs.
func floodAttacks() []attack {
	return []attack{
		{
			Name: "make giants of holes",
			Control: func(w *world) {
				w.Shell("truncate -s 64M giant && git add giant")
				if got := w.Git("cat-file", "-s", ":giant"); got != "67108864" {
					w.Fatalf("git itself does not read a hole: %s", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				before := w.used(w.State) + w.used(filepath.Join(w.Repo, ".git"))
				got := w.InsideShell(box, "truncate -s 1T a-terabyte; truncate -s 3G a-past-2-31; echo end >> a-past-2-31; for i in $(seq 100); do truncate -s 60M many-$i; done; echo real > real")
				if got.Code != 0 || !strings.Contains(got.Stderr, `"a-terabyte" stays`) || !strings.Contains(got.Stderr, `"a-past-2-31" stays`) || !strings.Contains(got.Stderr, "it is sparse") {
					w.Errorf("the commit exits %d and says %q", got.Code, got.Stderr)
				}
				if got := w.Git("show", box+":real"); got != "real" {
					w.Errorf("what was real is not committed: %q", got)
				}
				// One of the many was small enough. What is allowed is not
				// allowed again with each commit.
				got = w.InsideShell(box, "truncate -s 120M many-1; truncate -s 60M one-more; mv many-2 moved; truncate -s 60M many-2")
				if got.Code != 0 || strings.Count(got.Stderr, "it is sparse") < 4 {
					w.Errorf("the next commit exits %d and says %q", got.Code, got.Stderr)
				}
				if size := w.treeSize(box); size > 65<<20 {
					w.Errorf("the branch holds %d MB", size>>20)
				}
				if grown := w.used(w.State) + w.used(filepath.Join(w.Repo, ".git")) - before; grown > 200<<20 {
					w.Errorf("the host's disk holds %d MB more", grown>>20)
				}
				w.Must("log", box)
				w.Must("diff", box, "--stat")
			},
		},
		{
			Name: "copy a bomb to the host",
			Control: func(w *world) {
				w.Shell("truncate -s 64M giant && cp --sparse=never giant copy")
				if used := w.used(filepath.Join(w.Repo, "copy")); used < 64<<20 {
					w.Fatalf("a copied hole takes only %d bytes outside", used)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				w.Inside(box, "/bin/sh", "-c", "mkdir /tmp/d; truncate -s 8E /tmp/d/a 2>/dev/null || truncate -s 15T /tmp/d/a; truncate -s 1T /tmp/giant; truncate -s 200M /tmp/hole; echo end >> /tmp/hole")
				out := filepath.Join(w.Dir, "out")
				for _, what := range []string{"/tmp/giant", "/tmp/d"} {
					if got := w.Litterbox("cp", box+":"+what, out); got.Code == 0 || !strings.Contains(got.Stderr, "the disk has room for") {
						w.Errorf("copying %s exits %d: %s", what, got.Code, got.Stderr)
					}
				}
				if used := w.used(out); used > 1<<20 {
					w.Errorf("what does not fit has left %d bytes", used)
				}
				hole := filepath.Join(w.Dir, "hole")
				w.Must("cp", box+":/tmp/hole", hole)
				info, err := os.Stat(hole)
				if err != nil || info.Size() != 200<<20+4 {
					w.Fatalf("the copied hole has %v (%v)", info, err)
				}
				if used := w.used(hole); used > 1<<20 {
					w.Errorf("a hole takes %d bytes on the host", used)
				}
			},
		},
		{
			Name: "storm the inodes",
			Control: func(w *world) {
				w.Shell("mkdir d; for i in $(seq 500); do echo $i > d/$i; done; git add d")
				if loose := w.loose(); loose < 500 {
					w.Fatalf("git add leaves only %d loose objects", loose)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				before := w.loose()
				w.InsideShell(box, "mkdir flat; seq 12000 | (cd flat; split -a 4 -l 1); for i in $(seq 300); do mkdir -p deep/$i/$i/$i; done; for i in $(seq 300); do echo $i > deep/$i/$i/$i/f; done")
				if files := strings.Count(w.Git("ls-tree", "-r", "--name-only", box), "\n"); files < 12300 {
					w.Errorf("only %d files are committed", files)
				}
				if loose := w.loose() - before; loose > 100 {
					w.Errorf("%d loose objects more in the host's repository", loose)
				}
				w.InsideShell(box, "rm -r flat deep; mkdir flat; echo x > flat/one")
				if got := w.Git("ls-tree", "-r", "--name-only", box, "--", "flat", "deep"); got != "flat/one" {
					w.Errorf("after the storm there is %q", got)
				}
			},
		},
		{
			Name: "flood the output",
			Control: func(w *world) {
				// A process that keeps the output grows with it.
				got := w.Shell("x=$(head -c 100000000 /dev/zero | tr '\\0' x); grep VmHWM /proc/$$/status")
				if kb := highWater(got.Stdout); kb < 90_000 {
					w.Fatalf("keeping 100 MB takes %d kB outside", kb)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				keeper, guest := w.MustProcesses(box)
				pids := map[string]int{"keeper": keeper, "guest": guest}
				// A client that never reads, and one that reads everything.
				reader, writer, err := os.Pipe()
				if err != nil {
					w.Fatal(err)
				}
				defer reader.Close()
				cmd := exec.Command(w.Program("litterbox"), "exec", box, "--no-commit", "--", "/bin/sh", "-c", "cat /dev/zero")
				cmd.Dir, cmd.Env, cmd.Stdout = w.Repo, w.Env, writer
				if err := cmd.Start(); err != nil {
					w.Fatal(err)
				}
				writer.Close()
				if _, err := reader.Read(make([]byte, 1)); err != nil {
					w.Fatal(err)
				}
				got := w.Inside(box, "/bin/sh", "-c", "head -c 500M /dev/zero | tr '\\0' x; head -c 100M /dev/zero >&2")
				if len(got.Stdout) != 500<<20 {
					w.Errorf("of 500 MB arrived %d bytes", len(got.Stdout))
				}
				got.Stdout, got.Stderr = "", ""
				for what, pid := range pids {
					status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
					if kb := highWater(string(status)); err != nil || kb == 0 || kb > 100_000 {
						w.Errorf("the %s took %d kB at most (%v)", what, kb, err)
					}
				}
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					w.Error(err)
				}
				reader.Close()
				_ = cmd.Wait() // of the signal
				if got := w.Inside(box, "echo", "alive"); got.Stdout != "alive\n" {
					w.Errorf("after the flood the sandbox says %q (%s)", got.Stdout, got.Stderr)
				}
			},
		},
		{
			Name: "flood the log of the background",
			Control: func(w *world) {
				w.Shell("yes flood | head -c 40000000 > log")
				if used := w.used(filepath.Join(w.Repo, "log")); used < 40_000_000 {
					w.Fatalf("a log outside holds %d bytes", used)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				w.Inside(box, "/bin/sh", "-c", "yes flood & echo $! > /tmp/pid")
				// By now it has written more than the file may hold.
				got := w.Inside(box, "/bin/sh", "-c", "while :; do read -r _ n < /proc/$(cat /tmp/pid)/io && w=$(sed -n 's/^wchar: //p' /proc/$(cat /tmp/pid)/io); test ${w:-0} -gt 100000000 && break; done; du -bc /run/litterbox/output-*.log | tail -n 1")
				size, err := strconv.ParseInt(strings.Fields(got.Stdout + " x")[0], 10, 64)
				if err != nil || size == 0 || size > 16<<20 {
					w.Errorf("the log of the background holds %q (%s)", got.Stdout, got.Stderr)
				}
			},
		},
	}
}

// used returns the disk space below path, in bytes of blocks.
func (w *world) used(path string) int64 {
	w.Helper()
	fields := strings.Fields(w.Shell("du -s -B1 " + path + " 2>/dev/null").Stdout)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// treeSize adds up the files of a commit, in bytes.
func (w *world) treeSize(revision string) (size int64) {
	w.Helper()
	for line := range strings.Lines(w.Git("ls-tree", "-r", "-l", revision)) {
		n, err := strconv.ParseInt(strings.Fields(line)[3], 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		size += n
	}
	return size
}

// loose counts the loose objects of the host's repository.
func (w *world) loose() int {
	w.Helper()
	n, err := strconv.Atoi(strings.Fields(w.Git("count-objects"))[0])
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// highWater is the most memory that a process ever had, in kB (proc(5), VmHWM).
func highWater(status string) int {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			n, _ := strconv.Atoi(fields[1]) // 0 is noticed
			return n
		}
	}
	return 0
}
