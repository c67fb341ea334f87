package git

import (
	"bytes"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// PathCheck reads diff-tree's output as it comes: a few trees that contain
// each other many times can stand for more paths than any memory holds.
type PathCheck struct {
	Stop  func()
	Err   error
	rest  []byte
	mode  uint32
	path  bool // a path comes next
	count int
}

func (p *PathCheck) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for p.Err == nil {
		// "<tree> <tree>\n" starts each pair, also with -z.
		if !p.path && len(p.rest) > 0 && p.rest[0] != ':' {
			_, rest, ok := bytes.Cut(p.rest, []byte{'\n'})
			if !ok {
				break
			}
			p.rest = rest
			continue
		}
		token, rest, ok := bytes.Cut(p.rest, []byte{0})
		if !ok {
			if len(p.rest) > 4*MaxPath {
				p.fail("a path is longer than %d bytes", MaxPath)
			}
			break
		}
		p.token(string(token))
		p.rest = rest
	}
	return len(b), p.Err
}

func (p *PathCheck) token(token string) {
	if !p.path {
		f := strings.Fields(token)
		if len(f) != 5 {
			p.fail("git diff-tree printed %q", Printable(token))
			return
		}
		p.mode, p.path = Octal(f[1]), true
		return
	}
	p.path = false
	if p.count++; p.count > MaxAgentPaths {
		p.fail("they change more than %d paths", MaxAgentPaths)
	}
	switch p.mode {
	case 0: // a deletion
		return
	case ModeFile, ModeExecutable, ModeLink, ModeGitlink:
	default:
		p.fail("%q has the mode %o", token, p.mode)
		return
	}
	if why := BadPath(token, p.mode); why != "" {
		p.fail("%q: %s", token, why)
	}
}

func (p *PathCheck) fail(format string, args ...any) {
	p.Err = fault.New(fault.Denied, "cannot accept the trees: "+format, args...)
	p.Stop()
}

const MaxAgentPaths = 1_000_000
