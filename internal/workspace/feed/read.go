package feed

import (
	"bufio"
	"bytes"
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

// node is one entry of a received listing.
type node struct {
	name   string
	entry  workspace.Entry
	target string // of a link
	inline *inline
	below  *below // of a directory
}

// inline is content that came with the listing.
type inline struct {
	content []byte
	holes   int64
}

// below is the content of a directory.
type below struct {
	properties uint64
	unread     uint64 // why it cannot be read; 0 where it can
	nodes      []node // sorted by name
	pruned     bool   // its content was left out, and is asked for when it is opened
}

// listing is a stream read to its end.
type listing struct {
	began int64
	top   *below
	left  budget
}

// budget is what a listing, and the parts asked for later, may still take.
type budget struct {
	entries int
	bytes   int64 // of names and targets
	room    int64 // of content
}

// read reads a listing from a stranger. pruned allows directories whose names
// come later.
func read(r io.Reader, limits Limits, pruned bool) (*listing, error) {
	limits = limits.withDefaults()
	t := taker{
		decoder: decoder{r: bufio.NewReaderSize(r, 64<<10)},
		budget:  budget{entries: limits.Entries, bytes: limits.Bytes, room: mostInlineKept}, pruned: pruned,
	}
	t.magic(magic)
	l := &listing{began: t.signed(), top: &below{}}
	t.directory(l.top, 0)
	t.counted(limits.Entries)
	l.left = t.budget
	return l, t.err
}

// readBelow reads one directory of a listing, whose path has a length.
func (l *listing) readBelow(r io.Reader, length int) (*below, error) {
	t := taker{decoder: decoder{r: bufio.NewReaderSize(r, 64<<10)}, budget: l.left}
	t.magic(belowMagic)
	d := &below{}
	switch op := t.byte(); {
	case t.err != nil:
	case op == opUnread:
		d.unread = t.reason()
	case op != opDirectory:
		t.fail(malformed("it has an entry of no known kind"))
	default:
		d.properties = t.number(opaque | repository)
		t.directory(d, length)
		t.counted(l.left.entries)
	}
	l.left = t.budget
	return d, t.err
}

// counted compares the number of entries that came with the announced one.
// most is the maximum.
func (t *taker) counted(most int) {
	taken := most - t.entries
	if said := t.number(uint64(most)); t.err == nil && said != uint64(taken) {
		t.fail(malformed("it has not as many entries as it says"))
	}
}

// reason reads why a directory cannot be read.
func (t *taker) reason() uint64 {
	code := t.number(whyChanging)
	if _, known := reason(code); !known {
		t.fail(malformed("a reason in it is none"))
	}
	return code
}

// taker is one read under way.
type taker struct {
	decoder
	budget
	pruned bool // directories may come without their content
}

func (t *taker) text(most uint64) string {
	text := t.string(most)
	if t.bytes -= int64(len(text)); t.bytes < 0 {
		t.fail(malformed("its names are too much"))
	}
	return text
}

// directory reads entries up to the end of a directory. length is that of its path.
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
	case opInline:
		t.inline(n)
	case opLink:
		n.entry = t.entry(workspace.Link)
		n.target = t.text(maxPath)
	case opWhiteout:
		n.entry.Kind = workspace.Whiteout
	case opSpecial:
		n.entry.Kind = workspace.Special
	case opUnread:
		n.entry.Kind, n.below = workspace.Directory, &below{unread: t.reason()}
	case opPruned:
		if !t.pruned {
			t.fail(malformed("it leaves something out"))
		}
		n.entry.Kind, n.below = workspace.Directory, &below{pruned: true}
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

// inline reads a file with its content, which is as long as announced.
func (t *taker) inline(n *node) {
	n.entry = t.entry(workspace.Regular)
	n.inline = &inline{holes: int64(t.number(uint64(n.entry.Size)))}
	content := t.string(maxInlineKept)
	if t.room -= int64(len(content)); t.err == nil && (t.room < 0 || int64(len(content)) != n.entry.Size) {
		t.fail(malformed("the content in it is not what it says"))
	}
	n.inline.content = []byte(content)
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
	list func(path string) (*below, error) // what was left out
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
		return dir{below: &below{properties: opaque}, path: d.at(name), open: d.open, list: d.list}, nil
	}
	if n.below.pruned {
		listed, err := d.list(d.at(name))
		if err != nil {
			return nil, err
		}
		n.below = listed
	}
	switch {
	case n.below.unread != 0:
		why, _ := reason(n.below.unread)
		return nil, why
	}
	return dir{below: n.below, path: d.at(name), open: d.open, list: d.list}, nil
}

func (d dir) File(name string) (workspace.File, error) {
	n := d.find(name)
	switch {
	case n == nil || n.entry.Kind != workspace.Regular:
		return nil, workspace.Changing
	case n.inline != nil:
		return &known{Reader: bytes.NewReader(n.inline.content), entry: n.entry, holes: n.inline.holes}, nil
	}
	return d.open(d.at(name))
}

// known is a file whose content came with the listing. It implements [workspace.File].
type known struct {
	*bytes.Reader
	entry workspace.Entry
	holes int64
}

func (k *known) Entry() workspace.Entry { return k.entry }

// Again returns the entry that the machine read after the content.
func (k *known) Again() (workspace.Entry, error) { return k.entry, nil }

func (k *known) Holes() (int64, error) { return k.holes, nil }

func (k *known) Close() error { return nil }

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
