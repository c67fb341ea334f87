package feed

import (
	"bufio"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Limits bound what one listing may take of the host's memory. Zero fields mean
// the defaults.
type Limits struct {
	Entries int   // 2,000,000, as many as a commit takes
	Bytes   int64 // of all names and link targets; 256 MiB
}

func (l Limits) withDefaults() Limits {
	if l.Entries <= 0 {
		l.Entries = 2_000_000
	}
	if l.Bytes <= 0 {
		l.Bytes = 256 << 20
	}
	return l
}

// node is one entry of a listing that was taken.
type node struct {
	name   string
	entry  workspace.Entry
	target string // of a link
	below  *below // of a directory
}

// below is what a directory has.
type below struct {
	properties uint64
	unread     uint64 // why it cannot be read; 0 where it can
	nodes      []node // sorted by name
}

// listing is a stream that was read to its end.
type listing struct {
	began int64
	top   *below
}

// read takes a listing from a stranger.
func read(r io.Reader, limits Limits) (*listing, error) {
	limits = limits.withDefaults()
	t := taker{decoder: decoder{r: bufio.NewReaderSize(r, 64<<10)}, entries: limits.Entries, bytes: limits.Bytes}
	t.magic(magic)
	l := &listing{began: t.signed(), top: &below{}}
	t.directory(l.top, 0)
	taken := limits.Entries - t.entries
	if said := t.number(uint64(limits.Entries)); t.err == nil && said != uint64(taken) {
		t.fail(malformed("it has not as many entries as it says"))
	}
	return l, t.err
}

// taker is one read under way.
type taker struct {
	decoder
	entries int   // that may still come
	bytes   int64 // that names and targets may still take
}

func (t *taker) text(most uint64) string {
	text := t.string(most)
	if t.bytes -= int64(len(text)); t.bytes < 0 {
		t.fail(malformed("its names are too much"))
	}
	return text
}

// directory reads entries up to the end of one. length is that of its path.
func (t *taker) directory(d *below, length int) {
	for t.err == nil {
		op := t.byte()
		if t.err != nil || op == opEnd {
			return
		}
		if t.entries--; t.entries < 0 {
			t.fail(malformed("it has too many entries"))
			return
		}
		n := node{name: t.text(maxName)}
		switch {
		case t.err != nil:
			return
		case n.name == "" || n.name == "." || n.name == ".." || strings.ContainsAny(n.name, "/\x00"):
			t.fail(malformed("a name in it is none"))
			return
		case len(d.nodes) > 0 && n.name <= d.nodes[len(d.nodes)-1].name:
			t.fail(malformed("its names are out of order, or come twice"))
			return
		case length+1+len(n.name) > maxPath:
			t.fail(malformed("a path in it is too long"))
			return
		}
		t.one(&n, op, length+1+len(n.name))
		d.nodes = append(d.nodes, n)
	}
}

func (t *taker) one(n *node, op byte, length int) {
	switch op {
	case opRegular:
		n.entry = t.entry(workspace.Regular)
	case opLink:
		n.entry = t.entry(workspace.Link)
		n.target = t.text(maxPath)
	case opWhiteout:
		n.entry.Kind = workspace.Whiteout
	case opSpecial:
		n.entry.Kind = workspace.Special
	case opUnread:
		n.entry.Kind, n.below = workspace.Directory, &below{unread: t.number(whyChanging)}
		if _, known := reason(n.below.unread); !known {
			t.fail(malformed("a reason in it is none"))
		}
	case opDirectory:
		n.entry.Kind, n.below = workspace.Directory, &below{properties: t.number(opaque | repository)}
		t.directory(n.below, length)
		if n.name == ".git" && len(n.below.nodes) > 0 {
			t.fail(malformed("it goes into a .git"))
		}
		n.below.nodes = slices.Clip(n.below.nodes)
	default:
		t.fail(malformed("it has an entry of no known kind"))
	}
}

// find looks for a name.
func (d *below) find(name string) *node {
	at, ok := slices.BinarySearchFunc(d.nodes, name, func(n node, name string) int { return strings.Compare(n.name, name) })
	if !ok {
		return nil
	}
	return &d.nodes[at]
}

// walk goes down to the directory at a path; nil where there is none.
func (l *listing) walk(path string) *below {
	d := l.top
	for d != nil && path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		n := d.find(name)
		if n == nil {
			return nil
		}
		d = n.below
	}
	return d
}

// dir is a directory of a listing. It implements [workspace.Dir].
type dir struct {
	*below
	path string
	open func(path string) (workspace.File, error)
}

func (d dir) at(name string) string {
	if d.path == "" {
		return name
	}
	return d.path + "/" + name
}

func (d dir) Names() ([]string, error) {
	names := make([]string, len(d.nodes))
	for i := range d.nodes {
		names[i] = d.nodes[i].name
	}
	return names, nil
}

func (d dir) Entry(name string) (workspace.Entry, error) {
	if n := d.find(name); n != nil {
		return n.entry, nil
	}
	return workspace.Entry{}, fs.ErrNotExist
}

func (d dir) Dir(name string) (workspace.Dir, error) {
	n := d.find(name)
	switch {
	case n == nil:
		return workspace.Nothing{}, nil
	case n.below == nil: // what stands here hides the base
		return dir{below: &below{properties: opaque}, path: d.at(name), open: d.open}, nil
	case n.below.unread != 0:
		why, _ := reason(n.below.unread)
		return nil, why
	}
	return dir{below: n.below, path: d.at(name), open: d.open}, nil
}

func (d dir) File(name string) (workspace.File, error) {
	if n := d.find(name); n == nil || n.entry.Kind != workspace.Regular {
		return nil, workspace.Changing
	}
	return d.open(d.at(name))
}

func (d dir) Link(name string) ([]byte, error) {
	n := d.find(name)
	if n == nil || n.entry.Kind != workspace.Link {
		return nil, workspace.Changing
	}
	return []byte(n.target), nil
}

func (d dir) Opaque() bool { return d.properties&opaque != 0 }

func (d dir) Repository() bool { return d.properties&repository != 0 }

func (d dir) Close() {}
