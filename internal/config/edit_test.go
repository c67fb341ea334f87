package config_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/config"
)

type layout struct{ name, before, after string }

// layouts are files before and after the rule new.example is added to the allow
// list.
func layouts() []layout {
	return []layout{
		{"no file", "", "[network]\nallow = [\"new.example\"]\n"},
		{"another section", "[git]\nbranch-prefix = 'a/' # keep\n", "[git]\nbranch-prefix = 'a/' # keep\n\n[network]\nallow = [\"new.example\"]\n"},
		{"no newline at the end", "durability = 'strict'", "durability = 'strict'\n\n[network]\nallow = [\"new.example\"]\n"},
		{"a blank line at the end", "durability = 'strict'\n\n", "durability = 'strict'\n\n[network]\nallow = [\"new.example\"]\n"},
		{"comments only", "# mine\n", "# mine\n\n[network]\nallow = [\"new.example\"]\n"},

		{"an empty section", "[network] # ours\n\n[git]\n", "[network] # ours\nallow = [\"new.example\"]\n\n[git]\n"},
		{"an empty section at the very end", "[network]", "[network]\nallow = [\"new.example\"]"},
		{"a section with other keys", "[network]\n  default = 'deny' # yes\n\n  # about git\n[git]\n", "[network]\n  default = 'deny' # yes\n  allow = [\"new.example\"]\n\n  # about git\n[git]\n"},
		{"the other list is there", "[network]\ndeny = [\n  'a.example', # ]\n]\n", "[network]\ndeny = [\n  'a.example', # ]\n]\nallow = [\"new.example\"]\n"},
		{"a name in quotes", "[ \"network\" ]\n'default' = 'deny'\n", "[ \"network\" ]\n'default' = 'deny'\nallow = [\"new.example\"]\n"},
		{"dotted keys", "network.default = 'deny' # a\ndurability = 'strict'\n", "network.default = 'deny' # a\nnetwork.allow = [\"new.example\"]\ndurability = 'strict'\n"},
		{"dotted keys with blanks", "\tnetwork . default = 'deny'\n", "\tnetwork . default = 'deny'\n\tnetwork .allow = [\"new.example\"]\n"},
		{"a dotted list", "network.allow = ['a.example']\n[git]\n", "network.allow = ['a.example', \"new.example\"]\n[git]\n"},

		{"an inline table", "network = { default = 'deny' } # a\n", "network = { default = 'deny', allow = [\"new.example\"] } # a\n"},
		{"an inline table with the other list", "network = {deny=['a.example']}", "network = {deny=['a.example'], allow = [\"new.example\"]}"},
		{"an inline table with the list", "network = { allow = ['a.example'], default = 'deny' }", "network = { allow = ['a.example', \"new.example\"], default = 'deny' }"},
		{"an empty inline table", "network = {}\n", "network = { allow = [\"new.example\"] }\n"},
		{"a blank inline table", "network = { }\n", "network = { allow = [\"new.example\"] }\n"},

		{"an empty list", "[network]\nallow = [] # none\n", "[network]\nallow = [\"new.example\"] # none\n"},
		{"a blank list", "[network]\nallow = [ ]\n", "[network]\nallow = [ \"new.example\" ]\n"},
		{"one line", "[network]\nallow = [ 'a.example', \"b.example\" ] # two\ndeny = []\n", "[network]\nallow = [ 'a.example', \"b.example\", \"new.example\" ] # two\ndeny = []\n"},
		{"one line with a comma", "[network]\nallow = ['a.example',]\n", "[network]\nallow = ['a.example', \"new.example\",]\n"},
		{"lines with commas", "[network]\nallow = [\n  \"a.example\", # first\n\n  # about b\n  \"b.example\", # second, ]\n  # \"c.example\",\n]\n", "[network]\nallow = [\n  \"a.example\", # first\n\n  # about b\n  \"b.example\", # second, ]\n  \"new.example\",\n  # \"c.example\",\n]\n"},
		{"lines without the last comma", "[network]\nallow = [\n\t'a.example',\n\t'b.example' # why\n]\n", "[network]\nallow = [\n\t'a.example',\n\t'b.example', # why\n\t\"new.example\"\n]\n"},
		{"lines and the bracket behind the last", "[network]\nallow = ['a.example',\n         'b.example']\n", "[network]\nallow = ['a.example',\n         'b.example',\n         \"new.example\"]\n"},
		{"the same with a comma", "[network]\nallow = [\n  'a.example', ]\n", "[network]\nallow = [\n  'a.example',\n  \"new.example\", ]\n"},
		{"several to a line", "[network]\nallow = [\n  'a.example', 'b.example',\n  'c.example', 'd.example', # more\n]\n", "[network]\nallow = [\n  'a.example', 'b.example',\n  'c.example', 'd.example', \"new.example\", # more\n]\n"},
		{"commas first", "[network]\nallow = [ 'a.example'\n        , 'b.example'\n        ]\n", "[network]\nallow = [ 'a.example'\n        , 'b.example', \"new.example\"\n        ]\n"},
		{"a comma on a line of its own", "[network]\nallow = [\n  'a.example' # a\n  ,\n]\n", "[network]\nallow = [\n  'a.example', # a\n  \"new.example\"\n  ,\n]\n"},
		{"an empty list over lines", "[network]\nallow = [\n]\n", "[network]\nallow = [\n  \"new.example\",\n]\n"},
		{"an indented one with a comment", "[network]\n\tallow = [ # nothing yet\n\t\t# 'a.example',\n\t]\n", "[network]\n\tallow = [ # nothing yet\n\t\t# 'a.example',\n\t\t\"new.example\",\n\t]\n"},
		{"a string over lines", "[network]\nallow = [\n  \"\"\"\na.example\"\"\",\n]\n", "[network]\nallow = [\n  \"\"\"\na.example\"\"\",\n  \"new.example\",\n]\n"},

		{"carriage returns", "[network]\r\nallow = [\r\n  'a.example' # a\r\n]\r\n", "[network]\r\nallow = [\r\n  'a.example', # a\r\n  \"new.example\"\r\n]\r\n"},
		{"carriage returns without the section", "durability = 'strict'\r\n", "durability = 'strict'\r\n\r\n[network]\r\nallow = [\"new.example\"]\r\n"},
		{"a decoy in a comment and in a string", "# [network]\n# allow = []\ncontainer.env.A = '''\n[network]\nallow = []\n'''\n", "# [network]\n# allow = []\ncontainer.env.A = '''\n[network]\nallow = []\n'''\n\n[network]\nallow = [\"new.example\"]\n"},

		{"there already", "network.allow = ['new.example']", ""},
		{"there already in another spelling", "[network]\nallow = [ 'NEW.example.' ]", ""},
		{"denied as well", "[network]\ndeny = ['new.example']\n", "[network]\ndeny = ['new.example']\nallow = [\"new.example\"]\n"},
	}
}

func TestAddRule(t *testing.T) {
	t.Parallel()
	for _, c := range layouts() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := config.AddRule("f", []byte(c.before), "allow", "new.example")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.after, string(got)); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
			// The other list in the same layout.
			swap := strings.NewReplacer("allow", "deny", "deny", "allow", "default = 'deny'", "default = 'deny'")
			got, err = config.AddRule("f", []byte(swap.Replace(c.before)), "deny", "new.example")
			if diff := cmp.Diff(swap.Replace(c.after), string(got)); err != nil || diff != "" {
				t.Errorf("as a deny list: %v (- want, + got):\n%s", err, diff)
			}
		})
	}
}

// FuzzAddRule checks that a rule can be added to every valid file, that every old
// byte stays in its order, and that only the list changes its meaning.
func FuzzAddRule(f *testing.F) {
	for _, c := range layouts() {
		f.Add([]byte(c.before), "new.example")
	}
	f.Add([]byte(complete), "GET https://example.com/a\"b\\c")
	f.Fuzz(func(t *testing.T, content []byte, text string) {
		before, err := config.Parse("f", content)
		rules, wrong := config.Parse("f", []byte("network.deny = ["+tomlString(text)+"]"))
		if err != nil || wrong != nil || len(content)+len(text) > config.MaxSize/2 {
			return
		}
		rule := rules.Network.Deny[0]
		for _, list := range []string{"allow", "deny"} {
			want := before
			place := &want.Network.Allow
			if list == "deny" {
				place = &want.Network.Deny
			}
			known := slices.Contains(*place, rule)
			changed, err := config.AddRule("f", content, list, rule)
			if err != nil || known != (changed == nil) {
				t.Fatalf("%s: %v, changed to %q", list, err, changed)
			}
			if known {
				continue
			}
			got, err := config.Parse("f", changed)
			*place = append(slices.Clone(*place), rule)
			want.Hash, want.Set = got.Hash, got.Set
			if err != nil || !reflect.DeepEqual(want, got) {
				t.Errorf("%s: %v\n%s", list, err, cmp.Diff(want, got))
			}
			rest := changed
			for _, b := range content {
				i := bytes.IndexByte(rest, b)
				if i < 0 {
					t.Fatalf("%s: bytes are gone or moved: %q", list, changed)
				}
				rest = rest[i+1:]
			}
			if again, err := config.AddRule("f", changed, list, rule); again != nil || err != nil {
				t.Errorf("%s: the second time: %q, %v", list, again, err)
			}
		}
	})
}
