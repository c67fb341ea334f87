package git

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// quickOpen reads what [Open] asks git for. It knows only the ordinary
// repository; for anything else (another ref storage, another user's files, a
// commit that only a pack holds) it returns nil, and git must answer.
func quickOpen(dir string, l Location, known *remembered) *Repository {
	if known == nil || strings.ContainsAny(l.Top+l.GitDir, "\n") || !ordinary(known.Values) || !ours(l) || !inside(dir, l) {
		return nil
	}
	r := &Repository{Location: l, ObjectFormat: "sha1"}
	if known.Values["extensions.objectformat"] == "sha256" {
		r.ObjectFormat = "sha256"
	}
	if r.Head, r.HeadRef = r.readHead(); r.Head == "" {
		return nil
	}
	if r.HeadTree = known.Tree; r.Head != known.Commit {
		if r.HeadTree = r.treeOfLoose(r.Head); r.HeadTree == "" {
			return nil
		}
	}
	values := known.Values
	r.Settings = func() (*Settings, error) { return &Settings{Values: values, caller: r.caller}, nil }
	return r
}

// ordinary reports whether the configuration holds nothing that changes where a
// repository is or how it is stored (gitrepository-layout(5), git-config(1)).
func ordinary(values map[string]string) bool {
	if values["core.worktree"] != "" {
		return false
	}
	switch strings.ToLower(values["core.bare"]) {
	case "", "false":
	default:
		return false
	}
	version := values["core.repositoryformatversion"]
	if version != "" && version != "0" && version != "1" {
		return false
	}
	for key, value := range values {
		name, isExtension := strings.CutPrefix(key, "extensions.")
		switch {
		case !isExtension:
		case version == "1" && name == "objectformat" && (value == "sha1" || value == "sha256"):
		case version == "1" && name == "refstorage" && value == "files":
		case name == "partialclone", name == "worktreeconfig", name == "noop", name == "preciousobjects":
		default:
			return false
		}
	}
	return true
}

// inside reports whether git, going up from dir, finds the work tree of l first:
// no directory on the way is itself a bare repository or on another file system,
// which ends git's search.
func inside(dir string, l Location) bool {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	device, err2 := deviceOf(l.Top)
	if err != nil || err2 != nil {
		return false
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil {
			return false
		}
		if at, err := deviceOf(dir); err != nil || at != device {
			return false
		}
		if dir == l.Top || dir == filepath.Dir(dir) {
			break
		}
	}
	for _, path := range []string{
		filepath.Join(l.GitDir, "HEAD"), filepath.Join(l.CommonDir, "objects"), filepath.Join(l.CommonDir, "refs"),
	} {
		if _, err := os.Lstat(path); err != nil {
			return false
		}
	}
	return dir == l.Top
}

// ours reports whether the repository is ours alone; git refuses others unless
// safe.directory lists them (git-config(1)).
func ours(l Location) bool {
	for _, path := range []string{l.Top, filepath.Join(l.Top, ".git"), l.GitDir, l.CommonDir} {
		if uid, err := ownerOf(path); err != nil || uid != os.Geteuid() {
			return false
		}
	}
	return true
}

// readHead reads HEAD and the branch it names; empty if it is not a plain one.
func (r *Repository) readHead() (oid, ref string) {
	content, err := os.ReadFile(filepath.Join(r.GitDir, "HEAD"))
	if err != nil {
		return "", ""
	}
	head := strings.TrimRight(string(content), "\n")
	if oid = r.plainOid(head); oid != "" {
		return oid, ""
	}
	ref, ok := strings.CutPrefix(head, "ref: ")
	if !ok || !strings.HasPrefix(ref, Heads) || CheckRef(ref[len(Heads):]) != nil {
		return "", ""
	}
	content, err = os.ReadFile(filepath.Join(r.CommonDir, ref))
	if err == nil {
		return r.plainOid(strings.TrimRight(string(content), "\n")), ref
	}
	// Only then: git pack-refs writes the packed one before it removes this.
	packed, err := os.ReadFile(filepath.Join(r.CommonDir, "packed-refs"))
	if err != nil {
		return "", ""
	}
	at := bytes.Index(packed, []byte(" "+ref+"\n"))
	if at < r.HexLen() || at > r.HexLen() && packed[at-r.HexLen()-1] != '\n' {
		return "", ""
	}
	return r.plainOid(string(packed[at-r.HexLen() : at])), ref
}

// plainOid returns s if it is an object id of this repository's format.
func (r *Repository) plainOid(s string) string {
	if len(s) != r.HexLen() || !IsOid(s) {
		return ""
	}
	return s
}

// treeOfLoose reads the tree of a commit stored as a file of its own; empty if
// it is not.
func (r *Repository) treeOfLoose(commit string) string {
	line, _, _ := strings.Cut(r.looseCommit(commit), "\n")
	tree, _ := strings.CutPrefix(line, "tree ")
	return r.plainOid(tree)
}

// ParentsOfLoose reads the parents of such a commit.
func (r *Repository) ParentsOfLoose(commit string) []string {
	_, rest, _ := strings.Cut(r.looseCommit(commit), "\n")
	var parents []string
	for line := range strings.Lines(rest) {
		parent, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "parent ")
		if !ok || r.plainOid(parent) == "" {
			break
		}
		parents = append(parents, parent)
	}
	return parents
}

// looseCommit reads a commit stored as a file of its own (gitformat-loose, zlib).
func (r *Repository) looseCommit(commit string) string {
	f, err := os.Open(filepath.Join(r.CommonDir, "objects", commit[:2], commit[2:]))
	if err != nil {
		return ""
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return ""
	}
	content, err := io.ReadAll(io.LimitReader(z, MaxMessage))
	if err != nil {
		return ""
	}
	h := NewHash(r.ObjectFormat)
	h.Write(content)
	if hex.EncodeToString(h.Sum(nil)) != commit {
		return ""
	}
	header, body, ok := bytes.Cut(content, []byte{0})
	if !ok || string(header) != "commit "+strconv.Itoa(len(body)) {
		return ""
	}
	return string(body)
}

const MaxMessage = 1 << 20 // bytes
