package wildmatch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/git/wildmatch"
)

var (
	path = wildmatch.Mode{Path: true}
	flat = wildmatch.Mode{}
	fold = wildmatch.Mode{Path: true, Fold: true}
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		glob string
		mode wildmatch.Mode
		yes  []string
		no   []string
	}{
		{"", path, []string{""}, []string{"a", "/"}},
		{"foo", path, []string{"foo"}, []string{"fo", "foox", "Foo"}},
		{"f?o", path, []string{"foo", "f\xffo"}, []string{"f/o", "fo"}},
		{"f?o", flat, []string{"f/o"}, []string{"fo"}},
		{"*", path, []string{"", "a", ".a"}, []string{"a/b"}},
		{"*", flat, []string{"", "a/b"}, nil},
		{"a*b*c", path, []string{"abc", "axbxc", "abbcc"}, []string{"ab/c", "abcd"}},
		{"**", path, []string{"", "a", "a/b/c"}, nil},
		{"**/b", path, []string{"b", "a/b", "a/a/b"}, []string{"ab", "b/a"}},
		{"a/**/b", path, []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab", "a/xb"}},
		{"a/**", path, []string{"a/b", "a/b/c"}, []string{"a", "b/a/c"}},
		{"a**/b", path, []string{"a/b", "ax/b"}, []string{"a/x/b"}},
		{"a/**b", path, []string{"a/b", "a/xb"}, []string{"a/x/b"}},
		{"a/***/b", path, []string{"a/b", "a/x/y/b"}, nil},
		{`**\/b`, path, []string{"/b", "a/b", "x/a/b"}, []string{"b"}},
		{"**/*/x", path, []string{"a/x", "a/b/x"}, []string{"x"}},
		{"**/a*/**/b", path, []string{"a/b", "q/ax/w/e/b"}, []string{"b/b"}},
		{"*/b", path, []string{"a/b"}, []string{"b", "a/a/b"}},
		{`\*`, path, []string{"*"}, []string{"a", `\*`}},
		{`a\`, path, nil, []string{"a", `a\`}},
		{"[abc]", path, []string{"a", "c"}, []string{"d", "[abc]"}},
		{"[a-c]x", path, []string{"bx"}, []string{"dx", "-x"}},
		{"[!a-c]", path, []string{"d", "-"}, []string{"a", "/"}},
		{"[^a-c]", path, []string{"d", "^"}, []string{"b"}},
		{"[^a]", flat, []string{"/"}, []string{"a"}},
		{"[]a]", path, []string{"]", "a"}, []string{"[]a]"}},
		{"[]-a]", path, []string{"]", "^", "a"}, []string{"b"}},
		{"[!]a-]", path, []string{"b"}, []string{"]", "a", "-"}},
		{"[a-]", path, []string{"a", "-"}, []string{"b"}},
		{"[-a]", path, []string{"a", "-"}, []string{"b"}},
		{"[a-c-e]", path, []string{"b", "-", "e"}, []string{"d"}},
		{`[\]]`, path, []string{"]"}, []string{`\`}},
		{`[\-a]`, path, []string{"-", "a"}, []string{`\`}},
		{`[a-\d]`, path, []string{"b", "d"}, []string{`\`}},
		{"[/]", path, nil, []string{"/"}},
		{"[+-0]", path, []string{"."}, []string{"/"}},
		{"[[:digit:]x]", path, []string{"1", "x"}, []string{"a"}},
		{"[[:digit:]-z]", path, []string{"1", "-", "z"}, []string{"a"}},
		{"[[:space:]]", path, []string{"\t", " "}, []string{"\v", "\f"}},
		{"[[:foo:]]", path, nil, []string{"f", ":", "[[:foo:]]"}},
		{"[[:]", path, []string{"[", ":"}, []string{"]"}},
		{"[[:a]", path, []string{"[", ":", "a"}, []string{"b"}},
		{"[[::]]", path, nil, []string{":", ":]"}},
		{"[a", path, nil, []string{"a", "[a"}},
		{"[", path, nil, []string{"["}},
		{"[!", path, nil, []string{"!", "a"}},
		{`[a\`, path, nil, []string{"a"}},
		{"a\x00b", path, []string{"a"}, []string{"a\x00b"}},
		{"FoO*", fold, []string{"foo", "FOOx"}, nil},
		{"[a]", fold, []string{"A", "a"}, nil},
		{"[A]", fold, nil, []string{"A", "a"}}, // the text is folded, the set is not
		{"[A-B]", fold, []string{"A", "a", "b"}, []string{"c"}},
		{"[[:upper:]]", fold, []string{"A", "a"}, []string{"1"}},
		{`\A`, fold, nil, []string{"A", "a"}},
		{"\xc4", fold, []string{"\xc4"}, []string{"\xe4"}}, // only ASCII has case
	} {
		g := wildmatch.Compile(c.glob, c.mode)
		for _, text := range c.yes {
			if !g.Match(text) {
				t.Errorf("%q does not match %q", c.glob, text)
			}
		}
		for _, text := range c.no {
			if g.Match(text) {
				t.Errorf("%q matches %q", c.glob, text)
			}
		}
	}
}

// Malformed globs say so, and no others do.
func TestNever(t *testing.T) {
	for glob, want := range map[string]bool{
		"": false, "*": false, "[a-c]": false, "[z-a]": false, `\[`: false, `a\`: true, "[a": true, "[[:none:]]": true,
	} {
		compiled := wildmatch.Compile(glob, path)
		if got := compiled.Never(); got != want {
			t.Errorf("%q: %t, want %t", glob, got, want)
		}
	}
}

func TestClasses(t *testing.T) {
	// git's ctype, counted over all 256 bytes.
	for name, want := range map[string]int{
		"alnum": 62, "alpha": 52, "blank": 2, "cntrl": 33, "digit": 10, "graph": 94,
		"lower": 26, "print": 95, "punct": 32, "space": 4, "upper": 26, "xdigit": 22,
	} {
		g := wildmatch.Compile("[[:"+name+":]]", path)
		got := 0
		for c := range 256 {
			if g.Match(string([]byte{byte(c)})) {
				got++
			}
		}
		if name == "graph" || name == "punct" || name == "print" {
			got++ // the slash, which no set matches in path mode
		}
		if got != want {
			t.Errorf("[:%s:] has %d members, want %d", name, got, want)
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, base, path string
		want                bool
	}{
		{"foo", "", "foo", true},
		{"foo", "", "a/foo", true},
		{"foo/", "", "a/foo", true},
		{"/foo", "", "foo", true},
		{"/foo", "", "a/foo", false},
		{"/foo", "a", "a/foo", true},
		{"a/foo", "", "b/a/foo", false},
		{"!a/foo", "", "a/foo", true},
		{"*.c", "", "x/y.c", true},
		{"*.c", "", ".c", true},
		{"*.c", "", "c", false},
		{"*", "", "x/y", true},
		{"/*", "", "x/y", false},
		{"a*c", "", "x/abc", true},
		{"a/*c", "", "a/bc", true},
		{"a/*c", "", "a/b/c", false},
		{"a/b*", "", "a", false},
		{"a**/b", "", "ab", true}, // git compiles "**/b" on its own
		{"", "", "a", false},
		{"/", "", "a", false},
		{"//", "", "a", false},
	} {
		base := 0
		if c.base != "" {
			base = len(c.base) + 1
		}
		p := wildmatch.Parse(c.pattern, false)
		if got := p.Match(c.path, base, strings.LastIndexByte(c.path, '/')+1); got != c.want {
			t.Errorf("%q in %q against %q: %v", c.pattern, c.base, c.path, got)
		}
	}
	for _, p := range []string{"!FOO", "!*OO", "!F?O", "!A/FOO", "!/A/F*"} {
		p := wildmatch.Parse(p, true)
		if !p.Negated || !p.Match("a/foo", 0, 2) {
			t.Errorf("%+v does not match in the other case", p)
		}
	}
}

// TestManyStars never ends if the work is exponential.
func TestManyStars(t *testing.T) {
	name := strings.Repeat("a", 4096)
	deep := strings.Repeat("a/", 2048)
	for _, glob := range []string{
		strings.Repeat("a*", 100) + "b",
		strings.Repeat("*a", 100) + "b",
		strings.Repeat("*[ab]", 100) + "c",
		strings.Repeat("*?", 100) + "b",
		strings.Repeat("**/a/", 100) + "b",
		strings.Repeat("**/", 1<<20) + "b",
		strings.Repeat("*a", 1<<20) + "b",
		strings.Repeat("**/*a*/", 50) + "b",
		strings.Repeat(`**/*a*a*/**\/`, 20) + "b",
	} {
		for _, mode := range []wildmatch.Mode{path, flat} {
			g := wildmatch.Compile(glob, mode)
			for _, text := range []string{name, deep} {
				if g.Match(text) {
					t.Errorf("%.20q… matches %.20q…", glob, text)
				}
			}
		}
	}
	if g := wildmatch.Compile(strings.Repeat("**/a/", 100)+"b", path); !g.Match(deep + "b") {
		t.Error("**/a/…b does not match a/…b")
	}
}

// naive is the definition of a glob without any cleverness: the steps as a
// relation between positions, remembered. It shares the reading of brackets
// with the package, through one-bracket globs.
type naive struct {
	glob, text string
	mode       wildmatch.Mode
	known      map[[2]int]bool
}

func (n *naive) match(g, t int) (ok bool) {
	key := [2]int{g, t}
	if known, hit := n.known[key]; hit {
		return known
	}
	defer func() { n.known[key] = ok }()
	if g == len(n.glob) {
		return t == len(n.text)
	}
	c := n.glob[g]
	if c == '*' {
		end := g
		for end < len(n.glob) && n.glob[end] == '*' {
			end++
		}
		rest := n.glob[end:]
		whole := end-g > 1 && (g == 0 || n.glob[g-1] == '/') &&
			(rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
		if n.mode.Path && whole && strings.HasPrefix(rest, "/") && n.match(end+1, t) {
			return true
		}
		for ; ; t++ {
			if n.match(end, t) {
				return true
			}
			if t == len(n.text) || n.mode.Path && !whole && n.text[t] == '/' {
				return false
			}
		}
	}
	size := 1
	switch c {
	case '\\':
		size = 2
	case '[':
		for size = 2; g+size <= len(n.glob); size++ {
			if n.isBracket(n.glob[g : g+size]) {
				break
			}
		}
	}
	if g+size > len(n.glob) || t == len(n.text) {
		return false
	}
	one := wildmatch.Compile(n.glob[g:g+size], n.mode)
	return one.Match(n.text[t:t+1]) && n.match(g+size, t+1)
}

// isBracket reports whether s is one whole bracket expression. A set, as a
// glob of its own, matches single bytes or nothing; two bytes tell them apart.
func (n *naive) isBracket(s string) bool {
	inner := s[1:]
	if strings.HasPrefix(inner, "!") || strings.HasPrefix(inner, "^") {
		inner = inner[1:]
	}
	for i := 0; i < len(inner); i++ {
		switch {
		case inner[i] == '\\':
			i++
		case strings.HasPrefix(inner[i:], "[:"):
			end := strings.IndexByte(inner[i+2:], ']')
			if end < 0 {
				return false
			}
			if strings.HasSuffix(inner[i:i+2+end], ":") && end > 0 {
				i += 2 + end
			}
		case inner[i] == ']' && i > 0:
			return i == len(inner)-1
		}
	}
	return false
}

func agree(t *testing.T, glob, text string, mode wildmatch.Mode) {
	t.Helper()
	if strings.IndexByte(glob, 0) >= 0 || len(glob) > 200 || len(text) > 200 {
		return
	}
	g := wildmatch.Compile(glob, mode)
	n := naive{glob, text, mode, map[[2]int]bool{}}
	if got, want := g.Match(text), n.match(0, 0); got != want {
		t.Errorf("%q against %q (%+v): %v, by definition %v", glob, text, mode, got, want)
	}
}

func TestAgainstDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "/", "*", "*", "**", "**/", "/**/", "?", "[ab]", "[!a]", `\/`, "A"}
	for range 100_000 {
		var glob, text strings.Builder
		for range random.IntN(9) {
			glob.WriteString(pieces[random.IntN(len(pieces))])
		}
		for range random.IntN(12) {
			text.WriteByte("aab/"[random.IntN(4)])
		}
		agree(t, glob.String(), text.String(), wildmatch.Mode{Path: random.IntN(4) > 0, Fold: random.IntN(4) == 0})
	}
}

func FuzzGlob(f *testing.F) {
	for i, glob := range []string{"a/**/b", "[[:alpha:]-]", "[!]a-z]*", `**\/\a`, "*a*a*b", "[a-", `\`, "[[:a]"} {
		f.Add(glob, "a/b/aab", i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, glob, text string, path, fold bool) {
		agree(t, glob, text, wildmatch.Mode{Path: path, Fold: fold})
	})
}

func BenchmarkPattern(b *testing.B) {
	for _, pattern := range []string{"node_modules/", "*.o", "build-*.log", "/docs/**/out/*.html"} {
		p := wildmatch.Parse(pattern, false)
		b.Run(fmt.Sprintf("%q", pattern), func(b *testing.B) {
			b.ReportAllocs()
			const path = "docs/reference/sandbox/out/index.htm"
			for b.Loop() {
				p.Match(path, 0, 27)
			}
		})
	}
}
