package attribute_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
)

func TestLookup(t *testing.T) {
	type attributes = attribute.Attributes
	deep := strings.Repeat("x", 2040)
	for _, c := range []struct {
		why, content, path string
		want               attributes
	}{
		{"nothing said", "*.txt text\n", "a.c", attributes{}},
		{"every state", "a text -crlf eol=lf ident filter=x working-tree-encoding=UTF-16", "a",
			attributes{Text: "set", CRLF: "unset", EOL: "lf", Ident: true, Filter: "x", WorkingTreeEncoding: "UTF-16"}},
		{"values of text", "a text=auto crlf=input\n", "a", attributes{Text: "auto", CRLF: "input"}},
		{"unknown values", "a text=no eol=cr ident=yes filter\n", "a", attributes{}},
		{"an encoding without a value is an error", "a working-tree-encoding\n", "a", attributes{WorkingTreeEncoding: "true"}},
		{"the last line wins, each attribute for itself", "a text eol=lf\na -text\n", "a", attributes{Text: "unset", EOL: "lf"}},
		{"the last state of a line wins", "a text -text text=auto\n", "a", attributes{Text: "auto"}},
		{"unspecified again", "a text eol=lf\na !text\n", "a", attributes{EOL: "lf"}},
		{"a value behind a dash means nothing", "a -text=auto !eol=lf\n", "a", attributes{Text: "unset"}},
		{"one bad name spoils the line", "a text eo$l=lf\na filter=f\nb text --x\n", "a", attributes{Filter: "f"}},
		{"blanks", " \t a \t text\t \r\n", "a", attributes{Text: "set"}},
		{"comment", "#a text\n #a text\n", "#a", attributes{}},
		{"escaped comment", "\\#a text\n", "#a", attributes{Text: "set"}},
		{"BOM", "\ufeffa text\n", "a", attributes{Text: "set"}},
		{"NUL ends a line", "a text\x00eol=lf\n", "a", attributes{Text: "set"}},
		{"negative patterns are ignored", "!a text\n", "a", attributes{}},
		{"but not escaped ones", "\\!a text\n", "!a", attributes{Text: "set"}},
		{"a trailing slash matches no file", "a/ text\n", "a", attributes{}},
		{"nor does a directory's name reach inside", "a text\n", "a/b", attributes{}},
		{"two stars do", "a/** text\n", "a/b/c", attributes{Text: "set"}},
		{"quoted", `"a b" text` + "\n", "a b", attributes{Text: "set"}},
		{"escapes", `"\a\b\t\"\\\303\244" text` + "\n", "\a\b\t\"\\ä", attributes{}},
		{"escapes, then a glob's", `"\t\"\303\244" text` + "\n", "\t\"ä", attributes{Text: "set"}},
		{"no blank behind the quotes", `"a"text` + "\n", "a", attributes{Text: "set"}},
		{"an open quote is a character", `"a text` + "\n", `"a`, attributes{Text: "set"}},
		{"so is one with a bad escape", `"\x" text` + "\n", `"x"`, attributes{Text: "set"}},
		{"binary", "* text\na binary\n", "a", attributes{Text: "unset"}},
		{"binary, then text", "a binary text\n", "a", attributes{Text: "set"}},
		{"not binary", "a -binary text\n", "a", attributes{Text: "set"}},
		{"a macro of one's own", "a m\n[attr]m text eol=crlf n\n[attr]n filter=f -text\n", "a",
			attributes{Text: "unset", EOL: "crlf", Filter: "f"}},
		{"macros that call each other", "[attr]m n text\n[attr]n m eol=lf\na m\n", "a", attributes{Text: "set", EOL: "lf"}},
		{"a redefined built-in macro", "[attr]binary\na binary\n", "a", attributes{}},
		{"a macro named text", "[attr]text eol=lf\na text\nb -text\n", "a", attributes{Text: "set", EOL: "lf"}},
		{"a macro is set or nothing", "[attr]m text\na m=1\n", "a", attributes{}},
		{"a macro without a name is a pattern", "[attr] text\n", "t", attributes{Text: "set"}},
		{"a macro with a bad name", "[attr]m$ text\na m$\n", "a", attributes{}},
		{"a line at the limit", deep + " text\n", deep, attributes{Text: "set"}},
		{"a line over the limit", deep + "yyy text\n", deep + "yyy", attributes{}},
	} {
		t.Run(c.why, func(t *testing.T) {
			got := attribute.NewStack(nil, nil).Enter("", []byte(c.content)).Lookup(c.path)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPriority(t *testing.T) {
	empty := attribute.NewStack([]byte("* text eol=lf ident filter=global m\n[attr]m crlf\n"), []byte("top filter=info\n[attr]i eol=crlf\n"))
	root := empty.Enter("", []byte("* filter=root\nsub/a -text\nuses i\n[attr]i eol=lf\n"))
	sub := root.Enter("sub", []byte("a filter=sub\n/b -ident\ntop filter=sub\n[attr]m ident\nuses m\n"))
	got := map[string]attribute.Attributes{}
	for name, s := range map[string]*attribute.Stack{"empty": empty, "root": root, "sub": sub, "deep": sub.Enter("sub/deep", nil)} {
		for _, path := range []string{"sub/a", "sub/b", "sub/deep/b", "sub/top", "sub/uses", "b"} {
			got[name+" "+path] = s.Lookup(path)
		}
	}
	base := attribute.Attributes{Text: "set", CRLF: "set", EOL: "lf", Ident: true}
	with := func(change func(*attribute.Attributes)) attribute.Attributes {
		a := base
		change(&a)
		return a
	}
	filter := func(name string) attribute.Attributes {
		return with(func(a *attribute.Attributes) { a.Filter = name })
	}
	uses := with(func(a *attribute.Attributes) { a.Filter = "root"; a.EOL = "crlf" }) // the info file's macro
	want := map[string]attribute.Attributes{
		"empty sub/a": filter("global"), "empty sub/b": filter("global"), "empty sub/deep/b": filter("global"),
		"empty sub/top": filter("info"), "empty sub/uses": filter("global"), "empty b": filter("global"),
		"root sub/a": with(func(a *attribute.Attributes) { a.Filter = "root"; a.Text = "unset" }),
		"root sub/b": filter("root"), "root sub/deep/b": filter("root"), "root sub/top": filter("info"),
		"root sub/uses": uses, "root b": filter("root"),
		"sub sub/a": with(func(a *attribute.Attributes) { a.Filter = "sub"; a.Text = "unset" }),
		"sub sub/b": with(func(a *attribute.Attributes) { a.Filter = "root"; a.Ident = false }), "sub sub/deep/b": filter("root"),
		"sub sub/top": filter("info"), "sub sub/uses": uses, "sub b": filter("root"),
	}
	for key, a := range want {
		if path, ok := strings.CutPrefix(key, "sub sub/"); ok {
			want["deep sub/"+path] = a
		}
	}
	want["deep b"] = want["sub b"]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIgnoreCase(t *testing.T) {
	lines := []byte("*.TXT text\n/Dir/*.c -text\n")
	for options, want := range map[int]attribute.Text{0: "", 1: "set"} {
		s := attribute.NewStack(lines, nil, []attribute.Option{attribute.IgnoreCase}[:options]...)
		if got := s.Lookup("a.txt").Text; got != want {
			t.Errorf("with %d options: %q, want %q", options, got, want)
		}
	}
}

// TestNestedMacros nests macros deeper than a call stack should go.
func TestNestedMacros(t *testing.T) {
	var b strings.Builder
	name := func(i int) string {
		return "m" + strings.Repeat("a", i%40) + strings.Repeat("b", i/40%40) + strings.Repeat("c", i/1600)
	}
	const n = 20_000
	for i := range n {
		b.WriteString("[attr]" + name(i) + " " + name(i+1) + "\n")
	}
	b.WriteString("[attr]" + name(n) + " text\n* " + name(0) + "\n")
	if got := attribute.NewStack(nil, nil).Enter("", []byte(b.String())).Lookup("a").Text; got != attribute.TextSet {
		t.Errorf("text is %q", got)
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	s := attribute.NewStack(nil, nil).Enter("", []byte("* text=auto\n*.png -text diff=png\n*.sh text eol=lf\n"))
	if n := testing.AllocsPerRun(100, func() { s.Lookup("docs/a/b.png") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzLookup(f *testing.F) {
	f.Add([]byte("* text=auto\n*.c -text !eol filter=x\n"), []byte("\"a\\303\\244 b\" working-tree-encoding=UTF-16\n"), "a/b.c")
	f.Add([]byte("[attr]m n -text\n[attr]n m\n* m\n"), []byte("\ufeff[attr]binary\r\n\x00\n!a text\n[attr] x\n"), "a")
	f.Add([]byte(`"\`), []byte(`"\3`), `"\`)
	f.Add([]byte("a --x\na =\na x=\na -\n"), []byte("\"[attr] x y\" text"), "a")
	f.Fuzz(func(t *testing.T, global, content []byte, path string) {
		root := attribute.NewStack(global, nil).Enter("", content)
		a := root.Lookup(path)
		switch a.EOL {
		case "", "lf", "crlf":
		default:
			t.Errorf("eol is %q", a.EOL)
		}
		// Repeated lines of the root, and lines of an unrelated directory,
		// change nothing.
		again := root.Enter("", content).Enter("no-such-directory", []byte("* text=auto eol=crlf ident filter=no\n"))
		if diff := cmp.Diff(a, again.Lookup(path)); diff != "" && !strings.HasPrefix(path, "no-such-directory/") {
			t.Error(diff)
		}
	})
}
