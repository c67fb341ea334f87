package fsmonitor

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// errIndex means that an index is not plain enough to be read here.
var errIndex = errors.New("the index is of another kind")

// ownEntries lists the entries of the index that the base does not have. A file
// that the sandbox made, and that git tracks, leaves no trace in the upper
// directory when it is removed, so git has to look at each of them.
func ownEntries(p Place) ([]string, error) {
	gitDir := filepath.Join(p.Workspace, ".git")
	if os.Getenv("GIT_INDEX_FILE") != "" {
		return nil, errIndex
	}
	if dir := os.Getenv("GIT_DIR"); dir != "" {
		if dir, err := filepath.Abs(dir); err != nil || dir != gitDir {
			return nil, errIndex
		}
	}
	if !slices.ContainsFunc(p.Changes, func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, ".git", "index"))
		return !errors.Is(err, os.ErrNotExist)
	}) {
		return nil, nil // still the index of the base
	}
	base, err := os.ReadFile(filepath.Join(gitDir, BaseFile))
	if err != nil {
		return nil, err
	}
	index, err := os.ReadFile(filepath.Join(gitDir, "index"))
	if err != nil {
		return nil, err
	}
	header, names, ok := strings.Cut(string(base), "\n")
	size, err := strconv.Atoi(header)
	if !ok || err != nil || size != 20 && size != 32 {
		return nil, errIndex
	}
	return newer(names, index, size)
}

// newer walks through both sorted lists at once: gitformat-index(5), versions 2
// and 3.
func newer(base string, index []byte, size int) ([]string, error) {
	const header, fixed = 12, 40
	if len(index) < header+size || string(index[:4]) != "DIRC" {
		return nil, errIndex
	}
	if version := binary.BigEndian.Uint32(index[4:]); version != 2 && version != 3 {
		return nil, errIndex
	}
	var found []string
	at, end := header, len(index)-size
	text := string(index)
	for range binary.BigEndian.Uint32(index[8:]) {
		start := at + fixed + size + 2
		if start > end {
			return nil, errIndex
		}
		if binary.BigEndian.Uint16(index[at+fixed+size:])&0x4000 != 0 { // extended
			start += 2
		}
		length := -1
		if start < end {
			length = strings.IndexByte(text[start:end], 0)
		}
		if length < 0 {
			return nil, errIndex
		}
		name := text[start : start+length]
		var known bool
		if known, base = skipTo(base, name); !known {
			found = append(found, name)
		}
		at += (start + length - at + 8) &^ 7
	}
	for at+8 <= end {
		if text[at:at+4] == "link" { // the rest is in another file (git-update-index(1), --split-index)
			return nil, errIndex
		}
		at += 8 + int(binary.BigEndian.Uint32(index[at+4:]))
	}
	return found, nil
}

// skipTo advances in a list of names to the first that is not before name, and
// reports whether it is equal. The name stays: an unmerged path comes again.
func skipTo(base, name string) (known bool, rest string) {
	for base != "" {
		next, after, _ := strings.Cut(base, "\x00")
		if next >= name {
			return next == name, base
		}
		base = after
	}
	return false, ""
}
