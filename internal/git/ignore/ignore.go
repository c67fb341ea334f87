// Package ignore decides which untracked paths git ignores, exactly as git
// check-ignore does (gitignore(5)).
//
// It is pure: the caller reads the files and walks the tree. It does not know
// what is tracked, and tracked files are never ignored; that question comes
// first. Start reading at [Stack].
package ignore

import (
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git/wildmatch"
)

// Stack is the patterns in force in one directory: those of the repository,
// and of every .gitignore from the root down to it. It is immutable, so that
// siblings share their parent, and safe for concurrent use.
type Stack struct {
	dir     string // the directory entered; "" is the root
	fold    bool
	ignored bool   // dir or a directory above it is, and so everything below
	top     *level // the file that ranks highest; nil if none has a pattern
}

// level is one file of patterns. Deeper levels rank higher.
type level struct {
	below    *level
	dir      string
	patterns []wildmatch.Pattern
}

// NewStack makes the stack of the root directory from the files that hold for
// the whole repository, lowest priority first: the content of
// core.excludesFile, then of info/exclude. The root's own .gitignore is for
// Enter(""). ignoreCase is core.ignoreCase.
func NewStack(ignoreCase bool, exclude ...[]byte) *Stack {
	s := &Stack{fold: ignoreCase}
	for _, content := range exclude {
		s.top = push(s.top, "", content, ignoreCase)
	}
	return s
}

// Enter makes the stack of dir, a directory below the one of s (relative to
// the root, with slashes, "" is the root) whose .gitignore has the given
// content; nil when there is none. s stays as it is.
//
// Nothing inside an ignored directory can be included again, so git does not
// read a .gitignore there, and Enter drops it.
//
// The patterns take up to some forty times the memory of the content; the
// caller bounds a file that a sandbox wrote.
func (s *Stack) Enter(dir string, gitignore []byte) *Stack {
	child := &Stack{dir: dir, fold: s.fold, top: s.top}
	child.ignored = dir != "" && s.Ignored(dir, true)
	if !child.ignored {
		child.top = push(s.top, dir, gitignore, s.fold)
	}
	return child
}

func push(top *level, dir string, content []byte, fold bool) *level {
	patterns := parse(content, fold)
	if len(patterns) == 0 {
		return top
	}
	return &level{below: top, dir: dir, patterns: patterns}
}

// Ignored reports whether git ignores path when it is not tracked. The path is
// relative to the root and lies below the directory of s; directories in
// between are judged on the way, but a .gitignore in them is unknown here.
func (s *Stack) Ignored(path string, isDir bool) bool {
	_, ignored := s.Verdict(path, isDir)
	return ignored
}

// Verdict is Ignored, and also reports whether any pattern decided. A path
// that matched and is not ignored was included again by a pattern with '!'.
func (s *Stack) Verdict(path string, isDir bool) (matched, ignored bool) {
	from := 0
	if below(s.dir, path) {
		if s.ignored {
			return true, true
		}
		from = start(s.dir)
	}
	for {
		slash := strings.IndexByte(path[from:], '/')
		if slash < 0 {
			return s.top.decide(path, from, isDir)
		}
		if _, ignored := s.top.decide(path[:from+slash], from, true); ignored {
			return true, true
		}
		from += slash + 1
	}
}

// decide looks for the last pattern that matches, in the deepest file that
// has one. name is the offset of the last component of path.
func (l *level) decide(path string, name int, isDir bool) (matched, ignored bool) {
	for ; l != nil; l = l.below {
		if !below(l.dir, path) {
			continue
		}
		base := start(l.dir)
		for i := len(l.patterns) - 1; i >= 0; i-- {
			p := &l.patterns[i]
			if (isDir || !p.DirOnly) && p.Match(path, base, name) {
				return true, !p.Negated
			}
		}
	}
	return false, false
}

// below reports whether path lies in dir.
func below(dir, path string) bool {
	return dir == "" || len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

// start returns the offset of the part of a path below dir.
func start(dir string) int {
	if dir == "" {
		return 0
	}
	return len(dir) + 1
}
