package engine

import (
	"strings"
	"testing"
)

// A client's settings as a sandbox has changed them end no program, however deep
// they are, and invalid ones are left as they are.
func TestHostileSettings(t *testing.T) {
	for name, content := range map[string]string{
		"deep lists":       "a = " + strings.Repeat("[", largestTOML-4),
		"more than read":   "a = " + strings.Repeat("[", 4<<20),
		"deep tables":      "a = " + strings.Repeat("{a=", largestTOML/3-4),
		"deep names":       strings.Repeat("a.", largestTOML/2-4) + "a = 1",
		"no TOML":          "\x00",
		"a name twice":     "a = 1\na = 2\n",
		"a list, an entry": "[[a]]\n[a]\n",
	} {
		if _, err := mergeSettings("x.toml", []byte(content), map[string]any{"b": true}, true); err == nil {
			t.Errorf("%s is merged into", name)
		}
	}
	for name, content := range map[string]string{"deep": strings.Repeat("[", 4<<20), "no object": "null", "a list": "[]", "two": "{} {}"} {
		if _, err := mergeSettings("x.json", []byte(content), map[string]any{"b": true}, true); err == nil {
			t.Errorf("%s is merged into", name)
		}
	}
	got, err := mergeSettings("x.toml", []byte("a = 1 # kept\n"), map[string]any{"b": map[string]any{"c": 5.0}}, false)
	if err != nil || !strings.Contains(string(got), "a = 1") || !strings.Contains(string(got), "c = 5\n") {
		t.Errorf("%q (%v)", got, err)
	}
}
