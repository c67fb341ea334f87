package agents

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzWithoutDenials: a checkout's settings, hooks included, reach the client
// inside unchanged, except for the denials of an install for a client outside.
func FuzzWithoutDenials(f *testing.F) {
	for _, seed := range []string{
		`{"permissions":{"deny":["Bash","Edit","Read(./.env)"],"allow":["mcp__litterbox"]},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"make"}]}]}}`,
		`{"permissions":{"deny":"Bash","allow":[1,null,["Bash"]]}}`, `{"permissions":["deny"]}`, `{"hooks":{"PreToolUse":{}},"n":12345678901234567890}`,
		`null`, `[]`, `{}{}`, `{"permissions":null}`, `{"permissions":{"deny":["Bash"]},"permissions":{"deny":["Edit"]}}`, `// a comment`, ``,
	} {
		f.Add(seed)
	}
	parse := func(text string) (document map[string]any) {
		if json.Unmarshal([]byte(text), &document) != nil {
			return nil
		}
		return document
	}
	f.Fuzz(func(t *testing.T, content string) {
		rest := withoutDenials(content)
		before, after := parse(content), parse(rest)
		if (before == nil) != (rest == "") || rest != "" && after == nil {
			t.Fatalf("%q becomes %q", content, rest)
		}
		for _, document := range []map[string]any{before, after} {
			permissions, _ := document["permissions"].(map[string]any)
			for _, key := range []string{"deny", "allow"} {
				list, ok := permissions[key].([]any)
				if !ok {
					continue
				}
				ours := func(item any) bool {
					text, _ := item.(string)
					return key == "deny" && slices.Contains(claudeTools(), text) || key == "allow" && text == "mcp__"+ServerName
				}
				if rest != "" && document["permissions"] != nil && slices.ContainsFunc(list, ours) {
					if cmp.Equal(document, after) {
						t.Fatalf("%q still denies or allows in %q", content, rest)
					}
				}
				permissions[key] = slices.DeleteFunc(list, ours)
			}
		}
		if diff := cmp.Diff(before, after); diff != "" && rest != "" {
			t.Fatalf("more than that changed:\n%s", diff)
		}
	})
}
