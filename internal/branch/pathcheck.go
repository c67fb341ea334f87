package branch

import (
	"bytes"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// pathCheck reads diff-tree's output as it comes: a few trees that hold each
// other many times over can stand for more paths than any memory holds.
type pathCheck struct {
	stop  func()
	err   error
	rest  []byte
	mode  uint32
	path  bool // a path comes next
	count int
}

func (p *pathCheck) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for p.err == nil {
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
			if len(p.rest) > 4*maxPath {
				p.fail("a path is longer than %d bytes", maxPath)
			}
			break
		}
		p.token(string(token))
		p.rest = rest
	}
	return len(b), p.err
}

func (p *pathCheck) token(token string) {
	if !p.path {
		f := strings.Fields(token)
		if len(f) != 5 {
			p.fail("git diff-tree printed %q", printable(token))
			return
		}
		p.mode, p.path = octal(f[1]), true
		return
	}
	p.path = false
	if p.count++; p.count > maxAgentPaths {
		p.fail("they change more than %d paths", maxAgentPaths)
	}
	switch p.mode {
	case 0: // a deletion
		return
	case modeFile, modeExecutable, modeLink, modeGitlink:
	default:
		p.fail("%q has the mode %o", token, p.mode)
		return
	}
	if why := badPath(token, p.mode); why != "" {
		p.fail("%q: %s", token, why)
	}
}

func (p *pathCheck) fail(format string, args ...any) {
	p.err = fault.New(fault.Denied, "cannot accept the trees: "+format, args...)
	p.stop()
}
