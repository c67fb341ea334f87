package patch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

var entry = patch.Object{{Key: "command", Value: "x"}, {Key: "args", Value: []string{"a", "b"}}}

func open(t *testing.T, format patch.Format, content string) patch.Document {
	t.Helper()
	doc, err := patch.Open(format, []byte(content))
	if err != nil {
		t.Fatalf("%q: %v", content, err)
	}
	return doc
}

// apply applies the splices of a change, and undoes them.
func apply(t *testing.T, content string, splices []patch.Splice, err error) string {
	t.Helper()
	if err != nil {
		t.Fatalf("%q: %v", content, err)
	}
	changed, err := patch.Apply([]byte(content), splices)
	if err != nil {
		t.Fatalf("%q: %v", content, err)
	}
	back, err := patch.Apply(changed, patch.Invert(splices))
	if err != nil || string(back) != content {
		t.Errorf("%q comes back as %q, %v", content, back, err)
	}
	return string(changed)
}

type change struct {
	name, before, after string
	// removed is what is left when the value is removed without a record; "="
	// means the former content.
	removed string
}

func TestSetJSON(t *testing.T) {
	const one = `{
  "servers": {
    "lb": {
      "command": "x",
      "args": ["a", "b"]
    }
  }
}`
	for _, c := range []change{
		{"nothing", "", one + "\n", "{}\n"},
		{"blanks", " \n", " \n" + one, " \n{}"},
		{"empty", "{}", one, "="},
		{"empty with an end", "{}\n", one + "\n", "="},
		{"empty on two lines", "{\n}\n", one + "\n", "{}\n"},
		{"a comment only", "{\n  // mine\n}\n", "{\n  // mine\n" + strings.TrimPrefix(one, "{\n") + "\n", "="},
		{"minified", `{"a":1,"servers":{"b":{}}}`, `{"a":1,"servers":{"b":{}, "lb": {"command": "x", "args": ["a", "b"]}}}`, "="},
		{"minified, empty", `{"servers":{}}`, `{"servers":{"lb": {"command": "x", "args": ["a", "b"]}}}`, `{}`},
		{
			"another", "{\n  \"servers\": {\n    \"b\": {}\n  }\n}\n",
			"{\n  \"servers\": {\n    \"b\": {},\n    \"lb\": {\n      \"command\": \"x\",\n      \"args\": [\"a\", \"b\"]\n    }\n  }\n}\n", "=",
		},
		{
			"tabs, comments, no end", "{\n\t\"a\": 1, // one\n\t/* two */ \"b\": [1,2] // three\n}",
			"{\n\t\"a\": 1, // one\n\t/* two */ \"b\": [1,2], // three\n\t\"servers\": {\n\t\t\"lb\": {\n\t\t\t\"command\": \"x\",\n\t\t\t\"args\": [\"a\", \"b\"]\n\t\t}\n\t}\n}", "=",
		},
		{
			"trailing comma", "{\n  \"a\": 1,\n  // end\n}\n",
			"{\n  \"a\": 1,\n  \"servers\": {\n    \"lb\": {\n      \"command\": \"x\",\n      \"args\": [\"a\", \"b\"]\n    }\n  },\n  // end\n}\n", "=",
		},
		{
			"CRLF", "{\r\n    \"a\": 1\r\n}\r\n",
			"{\r\n    \"a\": 1,\r\n    \"servers\": {\r\n        \"lb\": {\r\n            \"command\": \"x\",\r\n            \"args\": [\"a\", \"b\"]\r\n        }\r\n    }\r\n}\r\n", "=",
		},
		{"a byte order mark", "\xef\xbb\xbf{\"a\": 1}", "\xef\xbb\xbf{\"a\": 1, \"servers\": {\"lb\": {\"command\": \"x\", \"args\": [\"a\", \"b\"]}}}", "="},
		{"a brace behind", "{\n  \"a\": 1 }", "{\n  \"a\": 1,\n  \"servers\": {\n    \"lb\": {\n      \"command\": \"x\",\n      \"args\": [\"a\", \"b\"]\n    }\n  } }", "="},
	} {
		t.Run(c.name, func(t *testing.T) {
			splices, err := open(t, patch.JSON, c.before).Set([]string{"servers", "lb"}, entry)
			after := apply(t, c.before, splices, err)
			if diff := cmp.Diff(c.after, after); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			doc := open(t, patch.JSON, after)
			if got, there := doc.Get("servers", "lb"); !there || !patch.Same(got, entry) {
				t.Errorf("it holds %v", got)
			}
			if again, err := doc.Set([]string{"servers", "lb"}, entry); err != nil || again != nil {
				t.Errorf("again: %v, %v", again, err)
			}
			checkRemoved(t, c, doc, after)
		})
	}
}

func checkRemoved(t *testing.T, c change, doc patch.Document, after string) {
	t.Helper()
	want := c.removed
	if want == "=" {
		want = c.before
	}
	splices, err := doc.Remove([]string{"servers", "lb"})
	if diff := cmp.Diff(want, apply(t, after, splices, err)); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
}

func TestListsInJSON(t *testing.T) {
	for _, c := range []struct{ before, after, dropped string }{
		{`{"p":{"deny":[]}}`, `{"p":{"deny":["A", "B"]}}`, `{}`},
		{`{"p":{"deny":["C"]}}`, `{"p":{"deny":["C", "A", "B"]}}`, "="},
		{`{"p":{"deny":["A","C"]}}`, `{"p":{"deny":["A","C", "B"]}}`, `{"p":{"deny":["C"]}}`},
		{"{\n  \"p\": {\n    \"deny\": [\n      \"C\",\n      \"D\" // why\n    ]\n  }\n}", "{\n  \"p\": {\n    \"deny\": [\n      \"C\",\n      \"D\", // why\n      \"A\",\n      \"B\"\n    ]\n  }\n}", "="},
		{"{\n  \"p\": {\n    \"deny\": [\n      \"C\",\n    ],\n  },\n}", "{\n  \"p\": {\n    \"deny\": [\n      \"C\",\n      \"A\",\n      \"B\",\n    ],\n  },\n}", "="},
		{"{\n  \"a\": 1\n}", "{\n  \"a\": 1,\n  \"p\": {\n    \"deny\": [\"A\", \"B\"]\n  }\n}", "="},
	} {
		path, items := []string{"p", "deny"}, []string{"A", "B"}
		splices, err := open(t, patch.JSON, c.before).Append(path, items)
		after := apply(t, c.before, splices, err)
		if after != c.after {
			t.Errorf("%q\n got %q\nwant %q", c.before, after, c.after)
		}
		if c.dropped == "=" {
			c.dropped = c.before
		}
		splices, err = open(t, patch.JSON, after).Drop(path, items)
		if got := apply(t, after, splices, err); got != c.dropped {
			t.Errorf("dropped from %q\n got %q\nwant %q", after, got, c.dropped)
		}
	}
	_, err := open(t, patch.JSON, `{"p":{"deny":"all"}}`).Append([]string{"p", "deny"}, []string{"A"})
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("no list: %v", err)
	}
	_, err = open(t, patch.JSON, `{"p":true}`).Append([]string{"p", "deny"}, []string{"A"})
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("no object: %v", err)
	}
	_, err = open(t, patch.JSON, `{"p":{},"p":{}}`).Append([]string{"p", "deny"}, []string{"A"})
	if fault.KindOf(err) != fault.Invalid {
		t.Errorf("twice: %v", err)
	}
}

func TestSetTOML(t *testing.T) {
	const one = "[servers.lb]\ncommand = \"x\"\nargs = [\"a\", \"b\"]"
	for _, c := range []change{
		{"nothing", "", one + "\n", ""},
		{"keys", "model = \"m\" # mine\n", "model = \"m\" # mine\n\n" + one + "\n", "="},
		{"no end", "[a]\nb = 1", "[a]\nb = 1\n\n" + one, "="},
		{"another", "[servers.b]\ncommand = \"y\"\n\n\n# end\n", "[servers.b]\ncommand = \"y\"\n\n\n# end\n\n" + one + "\n", "="},
		{"CRLF", "a = 1\r\n", "a = 1\r\n\r\n" + strings.ReplaceAll(one, "\n", "\r\n") + "\r\n", "="},
	} {
		t.Run(c.name, func(t *testing.T) {
			splices, err := open(t, patch.TOML, c.before).Set([]string{"servers", "lb"}, entry)
			after := apply(t, c.before, splices, err)
			if diff := cmp.Diff(c.after, after); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			doc := open(t, patch.TOML, after)
			if got, there := doc.Get("servers", "lb"); !there || !patch.Same(got, entry) {
				t.Errorf("it holds %v", got)
			}
			checkRemoved(t, c, doc, after)
		})
	}
	// Where sections of others follow, they stay.
	before := "# top\n\n[servers.lb]\ncommand = \"x\"\nargs = [\n  \"a\", # first\n]\n[servers.lb.env]\nA = \"b\"\n\n# about c\n[c]\nd = 1\n"
	splices, err := open(t, patch.TOML, before).Remove([]string{"servers", "lb"})
	if got, want := apply(t, before, splices, err), "# top\n\n# about c\n[c]\nd = 1\n"; got != want {
		t.Errorf("got %q", got)
	}
	for _, layout := range []string{"servers = { b = { command = \"y\" } }\n", "servers = 1\n", "[[servers]]\na = 1\n"} {
		if _, err := open(t, patch.TOML, layout).Set([]string{"servers", "lb"}, entry); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%q: %v", layout, err)
		}
	}
	if _, err := open(t, patch.TOML, "servers.lb = { command = \"x\" }\n").Remove([]string{"servers", "lb"}); err != nil {
		t.Errorf("a dotted key is a line of its own: %v", err)
	}
	if _, err := open(t, patch.TOML, "servers = { lb = { command = \"x\" }, b = 1 }\n").Remove([]string{"servers", "lb"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("an inline table: %v", err)
	}
}

func TestScalarsInTOML(t *testing.T) {
	for _, c := range []struct{ before, after string }{
		{"", "mode = \"ro\"\n"},
		{"a = 1\n", "a = 1\nmode = \"ro\"\n"},
		{"a = [\n  1, # one\n]\n\n# about b\n[b]\nc = 2\n", "a = [\n  1, # one\n]\nmode = \"ro\"\n\n# about b\n[b]\nc = 2\n"},
		{"# about b\n[b]\nc = 2\n", "mode = \"ro\"\n\n# about b\n[b]\nc = 2\n"},
		{"mode = \"rw\" # mine\n[b]\n", "mode = \"ro\" # mine\n[b]\n"},
		{"mode = 'ro'\n", "mode = 'ro'\n"},
	} {
		doc := open(t, patch.TOML, c.before)
		splices, err := doc.Set([]string{"mode"}, "ro")
		if got := apply(t, c.before, splices, err); got != c.after {
			t.Errorf("%q\n got %q\nwant %q", c.before, got, c.after)
		}
		if c.before == c.after || strings.HasPrefix(c.before, "mode") {
			continue
		}
		splices, err = open(t, patch.TOML, c.after).Remove([]string{"mode"})
		if got := apply(t, c.after, splices, err); got != c.before {
			t.Errorf("removed from %q\n got %q\nwant %q", c.after, got, c.before)
		}
	}
}

func TestSetYAML(t *testing.T) {
	const one = "  lb:\n    command: x\n    args:\n    - a\n    - b"
	for _, c := range []change{
		{"nothing", "", "servers:\n" + one + "\n", ""},
		{"keys", "A: b # mine\n", "A: b # mine\nservers:\n" + one + "\n", "="},
		{"no end", "A: b", "A: b\nservers:\n" + one, "="},
		{"another", "servers:\n  b:\n    cmd: y # z\n\n# end\nC: d\n", "servers:\n  b:\n    cmd: y # z\n" + one + "\n\n# end\nC: d\n", "="},
		{"four blanks", "servers:\n    b: {cmd: y}\nC: d\n", "servers:\n    b: {cmd: y}\n    lb:\n      command: x\n      args:\n      - a\n      - b\nC: d\n", "="},
		{"empty", "servers: {} # none\nC: d\n", "servers: # none\n" + one + "\nC: d\n", "C: d\n"},
		{"null", "---\nservers:\nC: d\n", "---\nservers:\n" + one + "\nC: d\n", "---\nC: d\n"},
		{"CRLF", "A: b\r\n", "A: b\r\nservers:\r\n" + strings.ReplaceAll(one, "\n", "\r\n") + "\r\n", "="},
		{"a text with colons", "A: |\n  servers:\n    b: c\n\n  - d\nlist:\n- x: y\n- z\n", "A: |\n  servers:\n    b: c\n\n  - d\nlist:\n- x: y\n- z\nservers:\n" + one + "\n", "="},
	} {
		t.Run(c.name, func(t *testing.T) {
			splices, err := open(t, patch.YAML, c.before).Set([]string{"servers", "lb"}, entry)
			after := apply(t, c.before, splices, err)
			if diff := cmp.Diff(c.after, after); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			doc := open(t, patch.YAML, after)
			if got, there := doc.Get("servers", "lb"); !there || !patch.Same(got, entry) {
				t.Errorf("it holds %v", got)
			}
			checkRemoved(t, c, doc, after)
		})
	}
	for _, layout := range []string{"servers: {b: {cmd: y}}\n", "other: &other {a: b}\nservers: *other\n", "servers:\n- a\n", "servers:\n  - a\n", "servers: |\n  text\n"} {
		if _, err := open(t, patch.YAML, layout).Set([]string{"servers", "lb"}, entry); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%q: %v", layout, err)
		}
	}
}

// Mistakes are reported with their place.
func TestBrokenFiles(t *testing.T) {
	for _, c := range []struct {
		format        patch.Format
		content, want string
	}{
		{patch.JSON, "{\n  \"a\": 1\n  \"b\": 2\n}", "line 3, column 3: invalid character '\"' after object value (expecting ',' or '}')"},
		{patch.JSON, "{\"a\": }", "line 1, column 7: invalid character '}' at start of value"},
		{patch.JSON, "{\n  a: 1}", "line 2, column 3: this is not a JSON value"},
		{patch.JSON, "{\"a\" 1}", "line 1, column 6: invalid character '1' after object name"},
		{patch.JSON, "{\"a\": \"b\n\"}", "line 1, column 7: this is not a JSON value"},
		{patch.JSON, "{\"a\": [1, 2}", "line 1, column 12: invalid character '}' after array value (expecting ',' or ']')"},
		{patch.JSON, "{\n/* a", "line 2, column 1: parsing comment: unexpected EOF"},
		{patch.JSON, "{\"a\": 1", "line 1, column 8: parsing object after value: unexpected EOF"},
		{patch.JSON, "{} {}", "line 1, column 4: invalid character '{' after top-level value"},
		{patch.JSON, "[]", "line 1, column 1: the file must hold an object, in { }"},
		{patch.JSON, "{\"ä\": \"\xff\"}", "line 1, column 8: this is not UTF-8 text"},
		{patch.JSON, strings.Repeat("[", 1000), "line 1, column 201: more than 200 objects and lists stand in each other"},
		{patch.JSON, "{\"a\": \"\\x\"}", "line 1, column 7: this is not a JSON value"},
		{patch.JSON, "{\"a\": \"\\", "line 1, column 9: parsing string: unexpected EOF"},
		{patch.TOML, "a = 1\nb = \n", "line 2, column 5"},
		{patch.TOML, "[a]\n[a]\n", "a"},
		{patch.YAML, "a: b\n\tc: d\n", "line 2: found a tab character that violates indentation"},
		{patch.YAML, "a: b\n---\nc: d\n", "more than one document in a file is not understood"},
		{patch.YAML, "a: b\nnonsense\n", "line 2: could not find expected ':'"},
		{patch.YAML, "- a\n", "the file must hold keys and values"},
		{patch.YAML, "a: 1\rb: 2\n", "line 1, column 5: a line ends neither with LF nor with CRLF"},
		{patch.YAML, "a: 1\na: 2\n", "already defined"},
	} {
		_, err := patch.Open(c.format, []byte(c.content))
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.content, err)
		}
	}
}

// Whatever the file, a change does what it says, is undone byte for byte, and
// nothing panics.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"servers":{"a":{},},}`, "{\r\n\t\"a\": [1, 2,], // b\r\n}", `{"servers":[]}`, `{"a":"\ud800","b":1e5}`, "{\"servers\":\n{ /* x */ }}", "// x", "{\"lb\":1,\n\"servers\":{\"lb\":1}}",
		`{"servers":{"lb":1,"b":{"c":[{}]}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		doc, err := patch.Open(patch.JSON, []byte(content))
		var plain map[string]any
		if strict := json.Unmarshal([]byte(content), &plain); strict == nil && plain != nil && err != nil && !strings.Contains(err.Error(), "stand in each other") && !strings.Contains(err.Error(), "UTF-8") {
			t.Fatalf("%q: %v", content, err)
		}
		if err != nil {
			return
		}
		splices, err := doc.Set([]string{"servers", "lb"}, entry)
		if err != nil {
			return
		}
		after := apply(t, content, splices, nil)
		changed := open(t, patch.JSON, after)
		if got, there := changed.Get("servers", "lb"); !there || !patch.Same(got, entry) {
			t.Fatalf("%q became %q", content, after)
		}
		before, _ := doc.Get()
		want, _ := before.(map[string]any)
		if want == nil {
			want = map[string]any{}
		}
		servers, _ := want["servers"].(map[string]any)
		if servers == nil {
			servers = map[string]any{}
		}
		servers["lb"] = entry
		want["servers"] = patch.Plain(servers)
		servers["lb"] = patch.Plain(entry)
		want["servers"] = servers
		if got, _ := changed.Get(); !patch.Same(got, want) {
			t.Fatalf("%q became %q", content, after)
		}
		splices, err = changed.Remove([]string{"servers", "lb"})
		removed := apply(t, after, splices, err)
		if _, there := open(t, patch.JSON, removed).Get("servers", "lb"); there {
			t.Fatalf("%q became %q", after, removed)
		}
	})
}

func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"", "a: b", "servers:\n  b: {}\n", "servers: {}\n", "---\n\"a\": 'b'\n# c\n", "servers:\r\n    b:\r\n        - c\r\n", "servers:\n  lb: 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		doc, err := patch.Open(patch.YAML, []byte(content))
		if err != nil {
			return
		}
		splices, err := doc.Set([]string{"servers", "lb"}, entry)
		if err != nil {
			return
		}
		after := apply(t, content, splices, nil)
		if changed, err := patch.Open(patch.YAML, []byte(after)); err == nil {
			splices, err = changed.Remove([]string{"servers", "lb"})
			apply(t, after, splices, err)
		}
	})
}
