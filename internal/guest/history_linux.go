package guest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// head reports where the agent's own history stands. It is called after every
// command, so the ordinary layout is read here; git reads every other one
// (another ref storage, a linked worktree, refs that point to refs).
func (g *guest) head() (wire.Head, error) {
	dir := filepath.Join(g.Workspace, ".git")
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return wire.Head{Damage: wire.DamageGone}, nil
	}
	// Without a readable HEAD it is not a repository either, and git would wait
	// forever for a FIFO of that name.
	if info, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil && !info.Mode().IsRegular() {
		return wire.Head{Damage: wire.DamageHead}, nil
	}
	head, ok := readHead(dir)
	if !ok {
		if head, err = g.askHead(); err != nil {
			return head, err
		}
		if head.Commit == "" && head.Branch == "" {
			head.Damage = wire.DamageHead // git finds nothing usable
		}
	}
	if info != nil && info.IsDir() {
		head.Damage = cmp.Or(head.Damage, damaged(dir, head))
	}
	return head, nil
}

// damaged checks for what git needs besides HEAD: without refs or objects a
// directory is not a repository. A commit that is neither a file of its own nor in
// a pack is missing.
func damaged(dir string, head wire.Head) string {
	isDir := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.IsDir()
	}
	switch {
	case !isDir("objects"):
		return wire.DamageObjects
	case !isDir("refs"):
		return wire.DamageHead
	case head.Commit == "" || isDir("objects/pack"):
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "objects", head.Commit[:2], head.Commit[2:])); err != nil {
		return wire.DamageObjects
	}
	return ""
}

// readHead reads HEAD of a plain repository; ok is false where git must be asked.
func readHead(dir string) (head wire.Head, ok bool) {
	const maxConfig = 1 << 20
	config, err := proc.ReadSmall(filepath.Join(dir, "config"), maxConfig)
	// Coarse on purpose: a comment that mentions it only costs a process.
	if err != nil || bytes.Contains(bytes.ToLower(config), []byte("refstorage")) || len(config) == maxConfig {
		return wire.Head{}, false
	}
	text, err := readLine(filepath.Join(dir, "HEAD"))
	if err != nil {
		return wire.Head{}, false
	}
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return wire.Head{Commit: text}, wire.IsObjectID(text)
	}
	if !strings.HasPrefix(ref, "refs/") || path.Clean(ref) != ref || strings.ContainsFunc(ref, unusual) {
		return wire.Head{}, false
	}
	commit, err := readLine(filepath.Join(dir, ref))
	switch {
	case err == nil:
		return wire.Head{Commit: commit, Branch: ref}, wire.IsObjectID(commit)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EISDIR):
		return wire.Head{}, false
	}
	commit, err = findPacked(filepath.Join(dir, "packed-refs"), ref)
	return wire.Head{Commit: commit, Branch: ref}, err == nil
}

// unusual are characters that git forgives at the end of HEAD, or refuses in
// the name of a ref (git-check-ref-format(1)).
func unusual(r rune) bool { return r <= ' ' || strings.ContainsRune("\x7f~^:?*[\\", r) }

func readLine(path string) (string, error) {
	text, err := proc.ReadSmall(path, 4<<10)
	return strings.TrimRight(string(text), "\n"), err
}

// findPacked looks a ref up in packed-refs; "" when it is not there. Any other
// line there is an error: git accepts many of those.
func findPacked(path, ref string) (string, error) {
	f, _, err := proc.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for first := true; lines.Scan(); first = false {
		if text := lines.Text(); first && strings.HasPrefix(text, "#") || strings.HasPrefix(text, "^") {
			continue // the header, and what a tag points to
		}
		id, name, ok := strings.Cut(lines.Text(), " ")
		if !ok || !wire.IsObjectID(id) {
			return "", fs.ErrInvalid
		}
		if name == ref {
			return id, nil
		}
	}
	return "", lines.Err()
}

// askTime is how long git may look for HEAD: a repository can be made to stall
// it forever, and a commit outside waits for the answer.
const askTime = 5 * time.Second

// askHead makes git find HEAD.
func (g *guest) askHead() (wire.Head, error) {
	return g.askHeadOf(nil)
}

// askHeadOf asks in a directory: the workspace, or a submodule of it.
func (g *guest) askHeadOf(dir []byte) (wire.Head, error) {
	branch, err := g.gitLine(dir, "symbolic-ref", "-q", "HEAD")
	if err != nil {
		return wire.Head{}, err
	}
	commit, err := g.gitLine(dir, "rev-parse", "-q", "--verify", "HEAD^{commit}")
	if err != nil {
		return wire.Head{}, err
	}
	if commit != "" && !wire.IsObjectID(commit) {
		return wire.Head{}, fault.New(fault.Internal, "cannot understand what git says of HEAD")
	}
	return wire.Head{Commit: commit, Branch: branch}, nil
}

// gitLine runs git for one line of output, "" when git found nothing.
func (g *guest) gitLine(dir []byte, args ...string) (string, error) {
	var out bytes.Buffer
	enough := make(chan struct{})
	timer := time.AfterFunc(askTime, func() { close(enough) })
	code, _, err := g.git(dir, enough, "", &out, args...)
	switch {
	case !timer.Stop():
		return "", fault.New(fault.Timeout, "cannot find HEAD: git does not answer in %v", askTime)
	case err != nil || code != 0:
		return "", err
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// export sends a thin pack of Want without the objects that Have reaches.
func (g *guest) export(x *exchange) (wire.Empty, error) { return g.exportFrom(x, nil) }

// exportFrom does it in a directory: the workspace, or a submodule of it.
func (g *guest) exportFrom(x *exchange, dir []byte) (wire.Empty, error) {
	want, have := x.request.Want, x.request.Have
	if !wire.IsObjectID(want) || have != "" && !wire.IsObjectID(have) {
		return wire.Empty{}, fault.New(fault.Invalid, "cannot export %q without %q: not commit ids", want, have)
	}
	revs := want + "\n"
	if have != "" {
		revs += "^" + have + "\n"
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		// The client says nothing more; only the stream's end can come.
		for err := error(nil); err == nil; {
			_, _, err = x.in.Next()
		}
	}()
	code, complaint, err := g.git(dir, gone, revs, frames{x.out}, "pack-objects", "--revs", "--stdout", "--thin", "-q")
	if err != nil {
		return wire.Empty{}, err
	}
	if code != 0 {
		return wire.Empty{}, fault.New(fault.Conflict, "cannot export %s: %s", want, complaint)
	}
	return wire.Empty{}, nil
}

// git runs git in the workspace, or dir, to its end, with its output to w. It ends
// early when enough is closed.
func (g *guest) git(dir []byte, enough <-chan struct{}, stdin string, w io.Writer, args ...string) (code int, complaint string, err error) {
	argv := [][]byte{[]byte("git")}
	for _, arg := range args {
		argv = append(argv, []byte(arg))
	}
	c, err := g.prepare(&wire.Exec{
		Argv: argv, Dir: dir,
		Env: []string{"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"},
	})
	if err != nil {
		return 0, "", fault.Wrap(fault.Unavailable, err, "cannot ask git")
	}
	stdio, err := openStdio(nil)
	if err != nil {
		return 0, "", fault.Wrap(fault.Unavailable, err, "cannot ask git")
	}
	c.files = stdio.fds()
	child, err := g.launch(c)
	stdio.closeChildSide()
	if err != nil {
		stdio.close()
		return 0, "", fault.Wrap(fault.Unavailable, err, "cannot ask git")
	}
	defer stdio.close()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-enough:
			// Something may hold the pipes beyond the end of the process called git.
			g.children.signal(child, unix.SIGKILL)
			stdio.close()
		case <-finished:
		}
	}()
	go func() {
		_, _ = io.WriteString(stdio.input, stdin) // git complains if it got too little
		stdio.input.Close()
	}()
	complaints := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(stdio.sources[1].file, 4<<10))
		_, _ = io.Copy(io.Discard, stdio.sources[1].file)
		complaints <- strings.TrimSpace(string(text))
	}()
	_, err = io.Copy(w, struct{ io.Reader }{stdio.sources[0].file})
	if err != nil {
		g.children.signal(child, unix.SIGKILL)
	}
	<-child.done
	if err != nil {
		return 0, "", fault.Wrap(fault.Unavailable, err, "cannot pass on what git says")
	}
	return exitOf(child).Code, <-complaints, nil
}
