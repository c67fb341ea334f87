package landing

import (
	"strings"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// matcher finds the rules for a path. Patterns are separated by blanks, and
// {a,b} stands for either. One without a slash is a file name at any depth; one
// that ends in a slash is a directory at any depth, and everything in it; any
// other is the end of a path. * stands for anything within a component. Case
// and spelling do not count: see foldName.
type matcher struct {
	rules []riskRule
	names map[string][]int // by a last component without *
	dirs  map[string][]int // by a directory of one component without *
	other []pattern
}

type pattern struct {
	parts []component
	dir   bool
	rule  int
}

func newMatcher(rules []riskRule) *matcher {
	m := &matcher{rules: rules, names: map[string][]int{}, dirs: map[string][]int{}}
	for i, rule := range rules {
		for _, p := range rule.patterns() {
			p = foldName(p)
			dir := strings.HasSuffix(p, "/")
			p = strings.TrimSuffix(p, "/")
			switch plain := !strings.ContainsAny(p, "*/"); {
			case plain && dir:
				m.dirs[p] = append(m.dirs[p], i)
			case plain:
				m.names[p] = append(m.names[p], i)
			default:
				m.other = append(m.other, pattern{components(p), dir, i})
			}
		}
	}
	return m
}

// patterns are the patterns of a rule with braces expanded.
func (r riskRule) patterns() []string {
	var all []string
	for _, p := range strings.Fields(r.paths) {
		all = append(all, expandBraces(p)...)
	}
	return all
}

func expandBraces(p string) []string {
	open := strings.IndexByte(p, '{')
	if open < 0 {
		return []string{p}
	}
	end := open + strings.IndexByte(p[open:], '}')
	var all []string
	for choice := range strings.SplitSeq(p[open+1:end], ",") {
		for _, rest := range expandBraces(p[end+1:]) {
			all = append(all, p[:open]+choice+rest)
		}
	}
	return all
}

// find gives the rules that match a path, in the order of the table.
func (m *matcher) find(name string) []riskRule {
	parts := strings.Split(foldName(name), "/")
	hit := map[int]bool{}
	for i, part := range parts {
		for _, rule := range m.dirs[part] {
			hit[rule] = true
		}
		if i == len(parts)-1 {
			for _, rule := range m.names[part] {
				hit[rule] = true
			}
		}
	}
	for _, p := range m.other {
		if !hit[p.rule] && p.matches(parts) {
			hit[p.rule] = true
		}
	}
	var found []riskRule
	for i := range m.rules {
		if hit[i] {
			found = append(found, m.rules[i])
		}
	}
	return found
}

func (p pattern) matches(parts []string) bool {
	first, last := 0, len(parts)-len(p.parts)
	if !p.dir {
		first = last
	}
	for at := max(first, 0); at <= last; at++ {
		all := true
		for i, part := range p.parts {
			if all = part.matches(parts[at+i]); !all {
				break
			}
		}
		if all {
			return true
		}
	}
	return false
}

// component is one of a pattern, as what stands between its stars: all of a change's
// paths are compared with all patterns.
type component []string

func components(pattern string) []component {
	var all []component
	for part := range strings.SplitSeq(pattern, "/") {
		all = append(all, strings.Split(part, "*"))
	}
	return all
}

func (c component) matches(name string) bool {
	if len(c) == 1 {
		return name == c[0]
	}
	last := len(c) - 1
	rest, ok := strings.CutPrefix(name, c[0])
	if !ok || !strings.HasSuffix(rest, c[last]) {
		return false
	}
	rest = rest[:len(rest)-len(c[last])]
	for _, between := range c[1:last] {
		at := strings.Index(rest, between)
		if at < 0 {
			return false
		}
		rest = rest[at+len(between):]
	}
	return true
}

// looks reports whether a rule for the path wants to see contents.
func (m *matcher) looks(name string) bool {
	for _, rule := range m.find(name) {
		if rule.look != "" {
			return true
		}
	}
	return false
}

// judge finds the most urgent rule for a change under a name.
func (m *matcher) judge(c Change, name string, contents *contents) (Risk, bool) {
	var found Risk
	for _, rule := range m.find(name) {
		this := finding{rule.class, rule.reason}
		if (rule.look == lookGo || rule.look == lookPlugins) && (contents == nil || c.NewMode == git.ModeLink) {
			continue // the name says nothing at all
		}
		if rule.look != "" && contents != nil && c.NewMode != git.ModeLink {
			risky := false
			if this, risky = contents.look(rule, c); !risky {
				continue
			}
		}
		if found.Class == "" || this.class.Rank() < found.Class.Rank() {
			found = Risk{Class: this.class, Reason: this.reason}
		}
	}
	return found, found.Class != ""
}

// foldName maps all spellings that some file system takes for the same name to
// one: letters of either case, the letters that Unicode folds to ASCII (K, ſ),
// the ligatures of full case folding (APFS), code points that HFS+ ignores, and
// dots and blanks at the end, which Windows drops.
func foldName(name string) string {
	ascii := true
	for i := range len(name) {
		ascii = ascii && name[i] < 0x80
	}
	if !ascii {
		name = foldUnicode(name)
	}
	name = strings.ToLower(name)
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if trimmed := strings.TrimRight(part, ". "); trimmed != "" {
			parts[i] = trimmed
		}
	}
	return strings.Join(parts, "/")
}

func foldUnicode(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r < 0x80:
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			continue // HFS+; git's utf8.c, next_hfs_char
		case r == 'ß', r == 'ẞ':
			b.WriteString("ss")
			continue
		case r >= 0xfb00 && r <= 0xfb06:
			b.WriteString([]string{"ff", "fi", "fl", "ffi", "ffl", "st", "st"}[r-0xfb00])
			continue
		default:
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				if f < 0x80 {
					r = f
					break
				}
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}
