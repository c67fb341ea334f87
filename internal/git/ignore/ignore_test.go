package ignore_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
)

func TestIgnored(t *testing.T) {
	for _, c := range []struct {
		why     string
		content string
		yes, no []string // a path that ends in "/" is a directory
	}{
		{"names match at any depth", "foo\n", []string{"foo", "a/foo", "foo/x"}, []string{"foox", "Foo"}},
		{"a slash anchors", "a/foo\n/bar\n", []string{"a/foo", "bar"}, []string{"x/a/foo", "x/bar"}},
		{"comments and empty lines", "#foo\n\n\r\n  \n\\#bar\n", []string{"#bar"}, []string{"#foo", "foo", " "}},
		{"a comment begins at the line's start", " #foo\n", []string{" #foo"}, []string{"foo"}},
		{"trailing spaces go", "foo   \n", []string{"foo"}, []string{"foo   "}},
		{"a quoted space stays", "foo\\ \nbar\\  \n", []string{"foo ", "bar "}, []string{"foo", "bar  "}},
		{"tabs are no spaces", "foo\t\n", []string{"foo\t"}, []string{"foo"}},
		{"CRLF", "foo\r\nbar\r\n", []string{"foo", "bar"}, []string{"foo\r"}},
		{"only one CR", "foo\r\r\n", []string{"foo\r"}, []string{"foo"}},
		{"no newline at the end", "foo\nbar\r", []string{"foo", "bar"}, nil},
		{"a BOM at the start", "\ufefffoo\n\ufeffbar\n", []string{"foo", "\ufeffbar"}, []string{"\ufefffoo", "bar"}},
		{"a BOM before a comment", "\ufeff#foo\n", nil, []string{"#foo"}},
		{"NUL ends a line", "foo\x00bar\n\x00\nbaz\n", []string{"foo", "baz"}, []string{"foobar", "bar"}},
		{"directories only", "foo/\n", []string{"foo/", "a/foo/", "foo/x"}, []string{"foo", "a/foo"}},
		{"directories only, anchored", "a/foo/\n", []string{"a/foo/"}, []string{"a/foo", "b/a/foo/"}},
		{"last match wins", "*.o\n!keep.o\nkeep.*\n!/keep.o\n", []string{"a.o", "a/keep.o"}, []string{"keep.o"}},
		{"nothing comes back below an ignored directory", "foo/\n!foo/bar\n!bar\n", []string{"foo/bar"}, []string{"bar"}},
		{"it does below a directory whose content is ignored", "foo/*\n!foo/bar\n", []string{"foo/x"}, []string{"foo/", "foo/bar"}},
		{"escaped exclamation", "\\!foo\n!!bar\n!bar\n", []string{"!foo"}, []string{"foo", "!bar", "bar"}},
		{"a lone exclamation", "!\n!/\n/\n//\n", nil, []string{"!", "a/", "a"}},
		{"star", "*.log\na*b\n/x/*.c\n", []string{".log", "q/a.log", "a--b", "x/y.c"}, []string{"log", "x/y/z.c"}},
		{"two stars", "**/foo\nbar/**\na/**/b\n", []string{"foo", "x/foo", "bar/x", "bar/x/y", "a/b", "a/x/y/b"}, []string{"bar/", "ab", "a/xb"}},
		{"two stars that are one", "[a]**/b\n", []string{"a/b", "ax/b"}, []string{"ab", "a/x/b"}},
		{"two stars behind a literal", "a**/b\n", []string{"a/b", "ax/b", "ab", "a/x/b"}, []string{"x/a/b"}}, // a quirk of git
		{"brackets", "[a-c]x\n[!0-9]y\n[[:upper:]]z\n[]]w\n[\\]]v\n", []string{"bx", "ay", "Zz", "]w", "]v"}, []string{"dx", "1y", "az", "w"}},
		{"broken brackets never match", "[a\n[[:nope:]]\n[a-\n", nil, []string{"[a", "a", "n", "[a-"}},
		{"a trailing backslash never matches", "foo\\\n", nil, []string{"foo", "foo\\"}},
		{"bytes are not characters", "\xff?\nä\n[\xe4]\n", []string{"\xffx", "ä", "\xe4"}, []string{"\xffxx", "\xe5"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := ignore.NewStack(false).Enter("", []byte(c.content))
			verdicts := func(paths []string) map[string]bool {
				got := map[string]bool{}
				for _, p := range paths {
					path, isDir := strings.CutSuffix(p, "/")
					got[p] = s.Ignored(path, isDir)
				}
				return got
			}
			want := func(paths []string, v bool) map[string]bool {
				m := map[string]bool{}
				for _, p := range paths {
					m[p] = v
				}
				return m
			}
			if diff := cmp.Diff(want(c.yes, true), verdicts(c.yes)); diff != "" {
				t.Error("ignored:", diff)
			}
			if diff := cmp.Diff(want(c.no, false), verdicts(c.no)); diff != "" {
				t.Error("not ignored:", diff)
			}
		})
	}
}

type verdict struct{ Matched, Ignored bool }

func TestPriority(t *testing.T) {
	root := ignore.NewStack(false, []byte("*.a\n*.b\n*.c\n"), []byte("!*.a\nnever/\n")).Enter("", []byte("!*.b\n/sub/top\n"))
	sub := root.Enter("sub", []byte("!*.c\n*.a\n/anchored\n"))
	deep := sub.Enter("sub/deep", nil)
	never := root.Enter("never", []byte("!*\n"))
	far := root.Enter("never/x/y", []byte("!*\n"))
	got := map[string]verdict{}
	judge := func(name string, s *ignore.Stack, path string) {
		m, i := s.Verdict(path, false)
		got[name+" "+path] = verdict{m, i}
	}
	judge("root", root, "x.a")
	judge("root", root, "x.b")
	judge("root", root, "x.c")
	judge("root", root, "x.d")
	judge("sub", sub, "sub/x.a")
	judge("sub", sub, "sub/x.c")
	judge("sub", sub, "sub/top")
	judge("sub", sub, "sub/anchored")
	judge("sub", sub, "sub/x/anchored")
	judge("deep", deep, "sub/deep/x.a")
	judge("deep", deep, "sub/deep/top")
	judge("root", root, "sub/x.a") // the parent knows nothing of sub's file
	judge("sub", sub, "x.a")       // and sub's file says nothing about the root
	judge("never", never, "never/x")
	judge("root", root, "never/x")
	judge("far", far, "never/x/y/z")
	want := map[string]verdict{
		"root x.a": {true, false}, "root x.b": {true, false}, "root x.c": {true, true}, "root x.d": {},
		"sub sub/x.a": {true, true}, "sub sub/x.c": {true, false}, "sub sub/top": {true, true},
		"sub sub/anchored": {true, true}, "sub sub/x/anchored": {},
		"deep sub/deep/x.a": {true, true}, "deep sub/deep/top": {},
		"root sub/x.a": {true, false}, "sub x.a": {true, false},
		"never never/x": {true, true}, "root never/x": {true, true}, "far never/x/y/z": {true, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIgnoredDoesNotAllocate(t *testing.T) {
	s := ignore.NewStack(true, []byte("*.o\nbuild/\n*~\n")).Enter("", []byte("/docs/**/out\nx[a-f]*y*\n")).Enter("docs", nil)
	if n := testing.AllocsPerRun(100, func() { s.Ignored("docs/a/b/c.html", false) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzIgnored(f *testing.F) {
	f.Add([]byte("*.o\n!/a/**/b[!x-z]\n\\#q\\ \r\n"), []byte("\ufeff[[:alpha:]]/\n"), "a/b/c.o", true)
	f.Add([]byte("**/**\\/*\n!\n/\n//\n[\n"), []byte(nil), "a//b", false)
	f.Add([]byte("a*a*a*a*a*a*a*b"), []byte("!**"), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false)
	f.Fuzz(func(t *testing.T, exclude, content []byte, path string, isDir bool) {
		root := ignore.NewStack(isDir, exclude).Enter("", content)
		matched, ignored := root.Verdict(path, isDir)
		if ignored && !matched {
			t.Errorf("%q is ignored by nothing", path)
		}
		// An empty file at any depth changes no verdict.
		if dir, _, nested := strings.Cut(path, "/"); nested {
			if m, i := root.Enter(dir, nil).Verdict(path, isDir); m != matched || i != ignored {
				t.Errorf("entering %q changes %v, %v to %v, %v", dir, matched, ignored, m, i)
			}
		}
	})
}

func BenchmarkIgnored(b *testing.B) {
	content := "*.o\n*.a\n*.so\n*~\n.DS_Store\nnode_modules/\n/dist\n/build/\n*.py[cod]\n__pycache__/\n.env\n.env.*\n!.env.example\n/docs/_build\ncoverage/**/tmp\n"
	s := ignore.NewStack(false).Enter("", []byte(strings.Repeat(content, 4))).Enter("src", nil)
	b.ReportAllocs()
	for b.Loop() {
		s.Ignored("src/handler.go", false)
	}
}
