package patch_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// config's tests of network rules show the lists of a table; these are about
// depth, more than one string, and refusals.
func TestAppendTOML(t *testing.T) {
	for _, c := range []struct {
		path, items   []string
		before, after string
	}{
		{[]string{"a", "b", "l"}, []string{"x", "y"}, "", "[a.b]\nl = [\"x\", \"y\"]\n"},
		{[]string{"a", "b", "l"}, []string{"x"}, "[a]\nb.k = 1\n", "[a]\nb.k = 1\nb.l = [\"x\"]\n"},
		{[]string{"a", "b", "l"}, []string{"x"}, "a.b = {}\n", "a.b = { l = [\"x\"] }\n"},
		{[]string{"a", "b", "l"}, []string{"x"}, "[a.b] # ours\n[a.c]\nl = ['z']\n", "[a.b] # ours\nl = [\"x\"]\n[a.c]\nl = ['z']\n"},
		{[]string{"a", "l"}, []string{"x", "y"}, "[a]\nl = [\n  'y', # why\n]\n", "[a]\nl = [\n  'y', # why\n  \"x\",\n]\n"},
		{[]string{"l"}, []string{"x"}, "k = 1\n[a]\n", "k = 1\nl = [\"x\"]\n[a]\n"},
		{[]string{"l"}, []string{"x"}, "# about a\n[a]\n", "l = [\"x\"]\n\n# about a\n[a]\n"},
		{[]string{"l"}, []string{"x", "y"}, "l = ['y']\n", "l = ['y', \"x\"]\n"},
		{[]string{"a", "l.l"}, []string{"x"}, "[a]\n", "[a]\n\"l.l\" = [\"x\"]\n"},
	} {
		splices, err := open(t, patch.TOML, c.before).Append(c.path, c.items)
		after := apply(t, c.before, splices, err)
		if diff := cmp.Diff(c.after, after); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.before, diff)
		}
		if again, err := open(t, patch.TOML, after).Append(c.path, c.items); err != nil || again != nil {
			t.Errorf("%q: the second time: %v, %v", after, again, err)
		}
		back, err := patch.Apply([]byte(after), patch.Invert(splices))
		if err != nil || !bytes.Equal(back, []byte(c.before)) {
			t.Errorf("%q does not come back: %q, %v", c.before, back, err)
		}
	}
	for _, layout := range []string{"a = 1\n", "[a]\nl = 1\n", "[[a]]\n", "a = [{l = []}]\n"} {
		if _, err := open(t, patch.TOML, layout).Append([]string{"a", "l"}, []string{"x"}); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%q: %v", layout, err)
		}
	}
}
