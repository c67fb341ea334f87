package branch

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// expansion counts the paths that git visits when it compares trees. Trees may
// contain each other many times, so a few of them can stand for more paths than
// any memory holds. Each tree is read once and counted once; git reads the trees
// recursively only afterwards.
type expansion struct {
	read  func(oid string) ([]byte, error) // returns the content of a tree
	empty string                           // the tree that need not exist
	hash  int                              // bytes of an object id
	most  int                              // paths
	pairs map[[2]string]int
	whole map[string]extent
	held  int // bytes of the trees being looked at, one below the other
}

// extent is the size of one tree: the paths of files and directories below it,
// and their depth.
type extent struct{ paths, height int }

const (
	maxTreeHeight = git.MaxPath / 2 // names have at least one letter
	maxTreesHeld  = 256 << 20       // bytes
)

// treeLine is one entry of a tree; ids are raw.
type treeLine struct {
	name string
	mode string
	oid  string
}

// below returns the tree that an entry names, if any.
func (l treeLine) below() string {
	if l.mode == "40000" || l.mode == "040000" {
		return l.oid
	}
	return ""
}

// changed counts the paths that differ between two trees, given as raw ids; ""
// is a missing one.
func (x *expansion) changed(from, to string, depth int) (int, error) {
	if from == to {
		return 0, nil
	}
	if from == "" || to == "" {
		e, err := x.All(from+to, depth)
		return e.paths, err
	}
	pair := [2]string{from, to}
	if known, ok := x.pairs[pair]; ok {
		return known, nil
	}
	if depth > maxTreeHeight {
		return 0, x.deep()
	}
	old, oldSize, err := x.lines(from)
	if err != nil {
		return 0, err
	}
	now, size, err := x.lines(to)
	if err != nil {
		return 0, err
	}
	defer func() { x.held -= oldSize + size }()
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	had := make(map[string]treeLine, len(old))
	for _, l := range old {
		had[l.name] = l
	}
	count := 0
	compare := func(was, is treeLine) error {
		if was == is {
			return nil
		}
		n, err := x.changed(was.below(), is.below(), depth+1)
		if count += n + 1; err == nil && count > x.most {
			err = x.many()
		}
		return err
	}
	for _, is := range now {
		if err := compare(had[is.name], is); err != nil {
			return 0, err
		}
		delete(had, is.name)
	}
	for _, was := range had {
		if err := compare(was, treeLine{}); err != nil {
			return 0, err
		}
	}
	if len(x.pairs) >= x.most {
		return 0, x.many()
	}
	x.pairs[pair] = count
	return count, nil
}

// All counts everything below a tree.
func (x *expansion) All(oid string, depth int) (extent, error) {
	if oid == "" {
		return extent{}, nil
	}
	found, ok := x.whole[oid]
	if depth+found.height > maxTreeHeight {
		return extent{}, x.deep()
	}
	if ok {
		return found, nil
	}
	lines, size, err := x.lines(oid)
	if err != nil {
		return extent{}, err
	}
	defer func() { x.held -= size }()
	for _, l := range lines {
		below := extent{}
		if tree := l.below(); tree != "" {
			if below, err = x.All(tree, depth+1); err != nil {
				return extent{}, err
			}
			found.height = max(found.height, below.height+1)
		}
		if found.paths += below.paths + 1; found.paths > x.most {
			return extent{}, x.many()
		}
	}
	if len(x.whole) >= x.most {
		return extent{}, x.many()
	}
	x.whole[oid] = found
	return found, nil
}

func (x *expansion) many() error {
	return fault.New(fault.Denied, "cannot accept the trees: they change more than %d paths", x.most)
}

func (x *expansion) deep() error {
	return fault.New(fault.Denied, "cannot accept the trees: they are more than %d levels deep", maxTreeHeight)
}

// lines reads a tree, and counts its size as held.
func (x *expansion) lines(oid string) ([]treeLine, int, error) {
	if oid == x.empty {
		return nil, 0, nil
	}
	content, err := x.read(oid)
	if err != nil {
		return nil, 0, err
	}
	if x.held += len(content); x.held > maxTreesHeld {
		return nil, 0, fault.New(fault.Denied, "cannot accept the trees: they are larger than %d bytes", maxTreesHeld)
	}
	lines, err := parseTree(content, x.hash)
	return lines, len(content), err
}

// parseTree reads a tree object: "<mode> <name>\0<raw id>" again and again.
func parseTree(content []byte, hash int) ([]treeLine, error) {
	var lines []treeLine
	for text := string(content); text != ""; {
		mode, rest, ok := strings.Cut(text, " ")
		name, rest, ended := strings.Cut(rest, "\x00")
		if !ok || !ended || name == "" || len(rest) < hash {
			return nil, fault.New(fault.Denied, "cannot read a tree")
		}
		lines = append(lines, treeLine{name: name, mode: mode, oid: rest[:hash]})
		text = rest[hash:]
	}
	return lines, nil
}

// treeReader is a `git cat-file --batch` that is asked for one tree at a time.
type treeReader struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err git.Messages
}

// readTrees starts the process, calls use with it, and ends it.
func readTrees(ctx context.Context, c git.Command, use func(*treeReader) error) (err error) {
	runtime.LockOSThread() // as in Output
	defer runtime.UnlockOSThread()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.Args = []string{"cat-file", "--batch"}
	t := &treeReader{}
	if t.cmd, err = c.Cmd(ctx); err != nil {
		return err
	}
	t.cmd.Stderr = &t.err
	out, err := t.cmd.StdoutPipe()
	if err == nil {
		t.in, err = t.cmd.StdinPipe()
	}
	var wait func() error
	if err == nil {
		wait, err = c.Start(t.cmd)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot start git cat-file")
	}
	t.out = bufio.NewReader(out)
	used := use(t)
	if used != nil {
		stop() // no more will be read
	}
	closed := t.in.Close()
	ended := c.Failure(context.WithoutCancel(ctx), wait(), t.err.String())
	var known *fault.Error
	if errors.As(used, &known) {
		return used
	}
	if ended != nil {
		return ended // why an answer was missing
	}
	return errors.Join(used, closed)
}

// tree reads one tree, given as a raw id.
func (t *treeReader) tree(raw string) ([]byte, error) {
	oid := hex.EncodeToString([]byte(raw))
	if _, err := io.WriteString(t.in, oid+"\n"); err != nil {
		return nil, err
	}
	line, err := t.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	var found, kind string
	var size int64
	if n, _ := fmt.Sscanf(line, "%s %s %d\n", &found, &kind, &size); n != 3 || found != oid || kind != "tree" {
		return nil, fault.New(fault.Denied, "cannot read the tree %s: git says %q", oid, git.Printable(line))
	}
	if size < 0 || size > maxTree {
		return nil, fault.New(fault.Denied, "cannot accept the trees: one is larger than %d bytes", maxTree)
	}
	content := make([]byte, size+1) // and the line end after it
	if _, err := io.ReadFull(t.out, content); err != nil {
		return nil, err
	}
	return content[:size], nil
}

// Expand counts the paths of the trees of commits, each compared with the base
// and with the one before it, and refuses too many.
func (in intake) Expand(ctx context.Context, base string, commits []AgentCommit) error {
	raw := func(oid string) string {
		b, _ := hex.DecodeString(oid) // object ids, as their readers checked
		return string(b)
	}
	return readTrees(ctx, in.git(), func(t *treeReader) error {
		x := &expansion{
			read: t.tree, empty: raw(in.r.EmptyTree()), hash: in.r.HexLen() / 2, most: git.MaxAgentPaths,
			pairs: map[[2]string]int{}, whole: map[string]extent{},
		}
		before, sum := raw(base), 0
		for _, c := range commits {
			tree := raw(c.Tree)
			pairs := [][2]string{{raw(base), tree}, {before, tree}}
			if c.ParentTree != "" { // compared with the parent where others committed to the branch
				pairs = append(pairs, [2]string{raw(c.ParentTree), tree})
			}
			for n, p := range pairs {
				count, err := x.changed(p[0], p[1], 0)
				if err != nil {
					return err
				}
				if n == 1 {
					if sum += count; sum > x.most {
						return x.many()
					}
				}
			}
			before = tree
		}
		return nil
	})
}
