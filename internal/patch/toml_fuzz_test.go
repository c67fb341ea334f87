package patch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// FuzzTOML is FuzzJSON for TOML: a change keeps the meaning of everything else
// and is undone byte for byte.
func FuzzTOML(f *testing.F) {
	for _, seed := range []string{
		"", "a = 1", "[servers]\nb = 1\n", "[servers.b]\ncommand = 'y'\n# end", "servers.lb = 1\r\n", "servers = {lb = {}, b = 1}\n",
		"# top\n\n[servers.lb]\nx = [\n 1, # one\n]\n[servers.lb.env]\nA = \"b\"\n[c]\n", "[[servers]]\na = 1\n", "\xef\xbb\xbfmode = '''\n[x]\n'''\n",
		"a.l = ['y', # why\n]\n", "[a]\nk.l = 1 # x\n[servers]\nlb.k = []\n", "l = [ ]",
		"[servers.\"lb\"]\n", "mode = 1979-05-27 # when\n[a]\n", "[servers]\n[servers.lb]\n[servers.lb.x]\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		doc, err := patch.Open(patch.TOML, []byte(content))
		if err != nil {
			return
		}
		checkAppended(t, doc, content)
		for _, c := range []struct {
			path  []string
			value any
		}{{[]string{"servers", "lb"}, entry}, {[]string{"mode"}, "r\x7fo"}, {[]string{"servers", "mode"}, "ro"}} {
			splices, err := doc.Set(c.path, c.value)
			if err != nil {
				continue
			}
			after := apply(t, content, splices, nil)
			changed := open(t, patch.TOML, after)
			if got, there := changed.Get(c.path...); !there || !patch.Same(got, patch.Plain(c.value)) {
				t.Fatalf("%q became %q", content, after)
			}
			var was, is map[string]any
			if toml.Unmarshal([]byte(content), &was) != nil || toml.Unmarshal([]byte(after), &is) != nil {
				t.Fatalf("%q became %q", content, after)
			}
			drop(was, c.path)
			drop(is, c.path)
			if !patch.Same(was, is) && !strings.Contains(content, "nan") { // which is not itself
				t.Fatalf("%q became %q", content, after)
			}
			if splices, err = changed.Remove(c.path); err == nil {
				removed := apply(t, after, splices, nil)
				if _, there := open(t, patch.TOML, removed).Get(c.path...); there {
					t.Fatalf("%q became %q", after, removed)
				}
			}
		}
	})
}

// checkAppended adds to a list: the existing text stays, byte for byte, and so
// does every value but the list.
func checkAppended(t *testing.T, doc patch.Document, content string) {
	for _, path := range [][]string{{"a", "l"}, {"servers", "lb", "l"}, {"l"}} {
		splices, err := doc.Append(path, []string{"x", "y"})
		if err != nil {
			continue
		}
		for _, splice := range splices {
			if splice.Old != "" {
				t.Fatalf("%q: %q goes", content, splice.Old)
			}
		}
		after := apply(t, content, splices, nil)
		got, _ := open(t, patch.TOML, after).Get(path...)
		list, ok := got.([]any)
		if !ok || !slices.Contains(list, any("x")) || !slices.Contains(list, any("y")) {
			t.Fatalf("%q became %q", content, after)
		}
		var was, is map[string]any
		if toml.Unmarshal([]byte(content), &was) != nil || toml.Unmarshal([]byte(after), &is) != nil {
			t.Fatalf("%q became %q", content, after)
		}
		drop(was, path)
		drop(is, path)
		if !patch.Same(was, is) && !strings.Contains(content, "nan") { // which is not itself
			t.Fatalf("%q became %q", content, after)
		}
	}
}

// drop removes a value from a tree, with the tables that hold nothing else.
func drop(tree map[string]any, path []string) {
	if len(path) > 1 {
		below, ok := tree[path[0]].(map[string]any)
		if !ok {
			return
		}
		if drop(below, path[1:]); len(below) > 0 {
			return
		}
	}
	delete(tree, path[0])
}
