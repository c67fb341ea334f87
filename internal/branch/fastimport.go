package branch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// fastImport is a running `git fast-import` (git-fast-import(1)): one process
// that takes blobs, makes trees from the old ones plus edits, and moves the
// branch at its end, only forward and only if nobody else has moved it.
type fastImport struct {
	call    call
	cmd     *exec.Cmd
	in      *bufio.Writer
	pipe    io.Closer
	answers *bufio.Reader
	replies *os.File
	stderr  messages
	ctx     context.Context
	crash   string // where git leaves a report when it dies
	mark    int
	ended   bool
	started time.Time
	refs    []string // that it moves at its end
	drop    func(since time.Time, refs ...string)
}

// startFastImport starts the process. Every run leaves one small pack and
// notes it in edges: writing the objects loose would start a second process and
// take twice the time. Nor is it compressed yet: a commit is mostly trees, which
// hold hashes (measured at 100,000 files: 4.8 ms instead of 7.1).
// [Repository.Consolidate] joins the packs and compresses them.
func (r *Repository) startFastImport(ctx context.Context, edges string, strict bool) (*fastImport, error) {
	sync := "core.fsync=none"
	if strict {
		sync = "core.fsync=all"
	}
	// Not --done: a process that ends before its first word is no accident.
	c := r.git("fast-import", "--quiet", "--date-format=raw", "--cat-blob-fd=3")
	// With core.ignorecase, which a repository may carry from another system,
	// fast-import would put one of two names in the place of the other.
	c.config = []string{"fastimport.unpackLimit=0", "pack.compression=0", "core.ignorecase=false", "core.bigFileThreshold=64m", sync}
	if edges != "" {
		c.args = append(c.args, "--export-pack-edges="+edges)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot start git fast-import")
	}
	defer write.Close()
	c.files = []*os.File{write}
	f := &fastImport{call: c, ctx: ctx, replies: read, answers: bufio.NewReader(read), started: time.Now(), drop: r.dropLocks}
	fail := func(err error) (*fastImport, error) {
		return nil, errors.Join(fault.Wrap("", err, "cannot start git fast-import"), read.Close())
	}
	if f.cmd, err = c.command(ctx); err != nil {
		return fail(err)
	}
	pipe, err := f.cmd.StdinPipe()
	if err != nil {
		return fail(err)
	}
	f.pipe, f.in = pipe, bufio.NewWriterSize(pipe, 64<<10)
	f.cmd.Stderr = &f.stderr
	if err := c.start(f.cmd); err != nil {
		return fail(err)
	}
	f.crash = filepath.Join(r.CommonDir, "fast_import_crash_"+strconv.Itoa(f.cmd.Process.Pid))
	fmt.Fprint(f.in, "feature done\n")
	return f, nil
}

// blob sends the content of a file; edits name it by its object id.
func (f *fastImport) blob(size int64, content io.Reader) error {
	fmt.Fprintf(f.in, "blob\ndata %d\n", size)
	if n, err := io.Copy(f.in, content); err != nil || n != size {
		return f.died(err)
	}
	return f.died(f.in.WriteByte('\n'))
}

// begin starts a commit; parent is a ref with ^0, or what end returned.
func (f *fastImport) begin(ref string, author, committer Signature, message, parent string) error {
	f.mark++
	f.refs = append(f.refs, ref)
	fmt.Fprintf(f.in, "commit %s\nmark :%d\nauthor %s\ncommitter %s\n", ref, f.mark, author.line(), committer.line())
	_, err := fmt.Fprintf(f.in, "data %d\n%s\n", len(message), message)
	if f.mark == 1 || !strings.HasPrefix(parent, ":") {
		_, err = fmt.Fprintf(f.in, "from %s\n", parent)
	}
	return f.died(err)
}

// edit is one path to change in the commit under way; mode 0 deletes.
type edit struct {
	path string
	mode uint32
	oid  string // hex
}

func (f *fastImport) edit(e edit) {
	if e.mode == 0 {
		fmt.Fprintf(f.in, "D %s\n", quotePath(e.path))
		return
	}
	fmt.Fprintf(f.in, "M %06o %s %s\n", e.mode, e.oid, quotePath(e.path))
}

// end finishes the commit and gives its object id.
func (f *fastImport) end() (string, error) {
	fmt.Fprintf(f.in, "\nget-mark :%d\n", f.mark)
	if err := f.in.Flush(); err != nil {
		return "", f.died(err)
	}
	line, err := f.answers.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), f.died(err)
}

// reset makes a ref end where from says; the zero id means that it shall not exist.
func (f *fastImport) reset(ref, from string) {
	f.refs = append(f.refs, ref)
	fmt.Fprintf(f.in, "reset %s\nfrom %s\n\n", ref, from)
}

// keep stores what was sent so far as a pack, which is kept until the process
// ends, and waits for that.
func (f *fastImport) keep() error {
	fmt.Fprintf(f.in, "checkpoint\n\nget-mark :%d\n", f.mark)
	if err := f.in.Flush(); err != nil {
		return f.died(err)
	}
	_, err := f.answers.ReadString('\n')
	return f.died(err)
}

// treeEntry is an answer to ls; mode 0 means that there is nothing.
type treeEntry struct {
	mode uint32
	oid  string
}

// listQuery asks for a path in a commit or tree.
func listQuery(treeish, path string) string { return "ls " + treeish + " " + quotePath(path) }

// ask sends queries and reads their answers. Answers are read while queries
// are still being sent: both pipes are short.
func (f *fastImport) ask(queries ...string) ([]treeEntry, error) {
	sent := make(chan error, 1)
	go func() {
		for _, q := range queries {
			_, _ = f.in.WriteString(q) // bufio keeps the error for Flush
			_ = f.in.WriteByte('\n')
		}
		sent <- f.in.Flush()
	}()
	found := make([]treeEntry, 0, len(queries))
	var err error
	for range queries {
		var line string
		if line, err = f.answers.ReadString('\n'); err != nil {
			break
		}
		if strings.HasPrefix(line, "missing ") {
			found = append(found, treeEntry{})
			continue
		}
		head, _, _ := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if len(fields) != 3 || !isOid(fields[2]) {
			err = fault.New(fault.Internal, "cannot read git's answer %q", line)
			break
		}
		found = append(found, treeEntry{octal(fields[0]), fields[2]})
	}
	if err != nil {
		f.kill() // the sender may be stuck
	}
	return found, f.died(errors.Join(err, <-sent))
}

// finish moves the refs and waits for the end.
func (f *fastImport) finish() error {
	_, err := f.in.WriteString("done\n")
	err = errors.Join(err, f.in.Flush(), f.pipe.Close())
	return f.wait(err)
}

func (f *fastImport) wait(err error) error {
	if f.ended {
		return err
	}
	f.ended = true
	exit := f.call.failure(f.ctx, f.cmd.Wait(), f.stderr.String())
	_ = f.replies.Close() // read end of a pipe
	text := f.stderr.String()
	if exit == nil {
		return err
	}
	if exitCode(exit) < 0 { // killed
		f.drop(f.started, f.refs...)
	}
	if lock, ok := lockNamed(text); ok {
		return lock
	}
	if strings.Contains(text, "Not updating ") || strings.Contains(text, "but expected ") {
		return errMoved
	}
	_ = os.Remove(f.crash) // git's report about our own stream; there may be none
	return exit
}

// died turns an error of the pipes into what git said before it ended.
func (f *fastImport) died(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	_ = f.pipe.Close() // it is broken already
	if exit := f.wait(nil); exit != nil {
		return exit
	}
	return fault.Wrap(fault.Internal, err, "cannot speak to git fast-import")
}

func (f *fastImport) kill() { _ = f.cmd.Process.Kill() } // it may have ended by itself

// stop ends an import that did not finish; no ref moves.
func (f *fastImport) stop() {
	if f.ended {
		return
	}
	f.kill()
	_ = f.pipe.Close()
	_ = f.wait(nil) // killed
	_ = os.Remove(f.crash)
}

// line is a signature as it stands in a commit.
func (s Signature) line() string {
	clean := func(text string) string {
		text = strings.Map(func(r rune) rune {
			if r == '<' || r == '>' || r == '\n' || r == 0 {
				return -1
			}
			return r
		}, text)
		return strings.TrimSpace(text)
	}
	return fmt.Sprintf("%s <%s> %d %s", clean(s.Name), clean(s.Email), max(s.When.Unix(), 0), s.When.Format("-0700"))
}

// quotePath writes a path in git's C style; every byte survives.
func quotePath(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(path) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
