package guest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// head tells where the agent's own history stands. It is asked after every
// command, so the ordinary layout is read here; whatever else there is
// (another ref storage, a linked worktree, refs that point to refs) git reads.
func (g *guest) head() (wire.Head, error) {
	dir := filepath.Join(g.Workspace, ".git")
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return wire.Head{}, nil
	}
	if head, ok := readHead(dir); ok {
		return head, nil
	}
	return g.askHead()
}

// readHead reads HEAD of a plain repository; ok is false where git must be asked.
func readHead(dir string) (head wire.Head, ok bool) {
	const maxConfig = 1 << 20
	config, err := readSmall(filepath.Join(dir, "config"), maxConfig)
	// Coarse on purpose: a comment that mentions it costs a process, no more.
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
	if !strings.HasPrefix(ref, "refs/") || path.Clean(ref) != ref {
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

func readLine(path string) (string, error) {
	text, err := readSmall(path, 4<<10)
	return strings.TrimRight(string(text), "\n"), err
}

// findPacked looks a ref up in packed-refs; "" when it is not there.
func findPacked(path, ref string) (string, error) {
	f, _, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			return "", lines.Err()
		}
		if id, name, ok := strings.Cut(lines.Text(), " "); ok && name == ref && wire.IsObjectID(id) {
			return id, nil
		}
	}
}

// askHead has git find HEAD.
func (g *guest) askHead() (wire.Head, error) {
	branch, _, err := g.gitLine("symbolic-ref", "-q", "HEAD")
	if err != nil {
		return wire.Head{}, err
	}
	commit, _, err := g.gitLine("rev-parse", "-q", "--verify", "HEAD^{commit}")
	if err != nil {
		return wire.Head{}, err
	}
	if commit != "" && !wire.IsObjectID(commit) {
		return wire.Head{}, fault.New(fault.Internal, "cannot understand what git says of HEAD")
	}
	return wire.Head{Commit: commit, Branch: branch}, nil
}

// gitLine runs git for one line of output; "" where git found nothing.
func (g *guest) gitLine(args ...string) (line string, code int, err error) {
	var out bytes.Buffer
	code, _, err = g.git(nil, "", &out, args...)
	if err != nil || code != 0 {
		return "", code, err
	}
	return strings.TrimRight(out.String(), "\n"), 0, nil
}

// export sends a thin pack of Want without what Have reaches.
func (g *guest) export(x *exchange) (wire.Empty, error) {
	want, have := x.request.Want, x.request.Have
	if !wire.IsObjectID(want) || have != "" && !wire.IsObjectID(have) {
		return wire.Empty{}, fault.New(fault.Invalid, "cannot export %q without %q: not commit ids", want, have)
	}
	revs := want + "\n"
	if have != "" {
		revs += "^" + have + "\n"
	}
	code, complaint, err := g.git(x, revs, frames{x.out}, "pack-objects", "--revs", "--stdout", "--thin", "-q")
	if err != nil {
		return wire.Empty{}, err
	}
	if code != 0 {
		return wire.Empty{}, fault.New(fault.Conflict, "cannot export %s: %s", want, complaint)
	}
	return wire.Empty{}, nil
}

// git runs git in the workspace to its end, with its output to w. It ends
// early when the stream of x, where there is one, breaks.
func (g *guest) git(x *exchange, stdin string, w io.Writer, args ...string) (code int, complaint string, err error) {
	argv := [][]byte{[]byte("git")}
	for _, arg := range args {
		argv = append(argv, []byte(arg))
	}
	c, err := g.prepare(&wire.Exec{
		Argv: argv,
		Env:  []string{"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"},
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
	if x != nil {
		go func() {
			// The client says nothing more; the stream's end is all that can come.
			for {
				if _, _, err := x.in.Next(); err != nil {
					g.children.signal(child, unix.SIGKILL)
					return
				}
			}
		}()
	}
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
