package git

import (
	"strings"
	"unicode/utf8"
)

// isDotGit reports whether a file system could take name for .git: in any case,
// as an NTFS short name, with a suffix that NTFS ignores, or with the
// characters that HFS+ ignores. The rules are git's (CVE-2014-9390,
// CVE-2019-1353, is_ntfs_dotgit and is_hfs_dotgit).
func isDotGit(name string) bool {
	if hfsEqual(name, ".git") {
		return true
	}
	for _, part := range strings.Split(name, `\`) { // NTFS takes a backslash for a separator
		if ntfsEqual(part, ".git", "git~1") {
			return true
		}
	}
	return false
}

// isDotGitmodules is isDotGit for .gitmodules, which git reads from a checkout
// and must not find as a symbolic link (CVE-2018-11235).
func isDotGitmodules(name string) bool {
	return hfsEqual(name, ".gitmodules") || ntfsEqual(name, ".gitmodules", "gitmod~1", "gitmod~2", "gitmod~3", "gitmod~4") ||
		(len(name) >= 8 && strings.HasPrefix(strings.ToLower(name), "gi7eba~"))
}

// ntfsEqual compares as NTFS opens: without case, up to a colon (an alternate
// stream) and without trailing dots and spaces.
func ntfsEqual(name string, spellings ...string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	for _, s := range spellings {
		if strings.EqualFold(name, s) {
			return true
		}
	}
	return false
}

// hfsEqual compares as HFS+ does: without case and without the code points it
// ignores.
func hfsEqual(name, want string) bool {
	if !utf8.ValidString(name) {
		return false
	}
	stripped := strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
	return strings.EqualFold(stripped, want)
}

// MaxPath is the longest path that is committed, in bytes (PATH_MAX of Linux).
const MaxPath = 4096

// BadPath says why a path must never enter a commit, or "" if it may. git
// 2.39's fast-import accepts ".git/hooks/x" and "../x", so we check ourselves.
func BadPath(path string, mode uint32) string {
	if len(path) > MaxPath {
		return "its path is longer than 4096 bytes"
	}
	if strings.IndexByte(path, 0) >= 0 {
		return "its name holds a NUL"
	}
	for component := range strings.SplitSeq(path, "/") {
		switch {
		case component == "" || component == "." || component == "..":
			return "its path is not a plain one"
		case isDotGit(component):
			return "a file system may take its name for .git"
		case mode == ModeLink && isDotGitmodules(component):
			return "git refuses a symbolic link of that name"
		}
	}
	return ""
}

func Join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
