package attack_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
)

// valuesInRecords gives commands the values of [secrets], which look like
// nothing: only a reader of them can know them.
func valuesInRecords() attack {
	values := map[string]string{
		"FROM_FILE":    "correct horse/battery+staple",
		"FROM_COMMAND": "it's the-value=of & a command",
		"FROM_ENV":     "9f-lent-by-the-caller-3c",
		"FROM_AGE":     "stored/in.an~encrypted:file",
	}
	// forms returns the ways that a value may appear in a command.
	forms := func(value string) []string {
		return []string{
			value, base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)),
			base64.StdEncoding.EncodeToString([]byte("user:" + value)), url.QueryEscape(value), url.PathEscape(value), hex.EncodeToString([]byte(value)),
		}
	}
	// give gives commands every form of a value, and returns what to search for.
	give := func(w *world, value string) (words []string) {
		exec := func(args ...string) { w.Must(append([]string{"exec", box}, args...)...) }
		all := forms(value)
		exec(append([]string{"-m", "with " + strings.Join(all, " or ") + " of it", "--", "true", "--data", "in" + value + "side"}, all...)...)
		exec("--", "sh", "-c", "true '"+strings.ReplaceAll(value, "'", `'\''`)+"'")
		w.Must("milestone", box, "-m", "made with "+value)
		w.Must("exec", "--all", "--", "echo", value)
		for _, form := range all {
			// In Base64 the first and last characters also hold bits of the
			// text around the value.
			words = append(words, form[4:len(form)-4])
		}
		return words
	}
	return attack{
		Name: "values of secrets in records",
		Control: func(w *world) {
			w.sandbox()
			places := w.recorded(give(w, values["FROM_FILE"])...)
			for _, wanted := range []string{"iterations.jsonl", "cycles.jsonl", "events.jsonl", "log.jsonl", "exec.log", "the repository's objects", "litterbox log", "litterbox audit --json"} {
				if !slices.ContainsFunc(places, func(p string) bool { return strings.HasSuffix(p, wanted) }) {
					w.Errorf("what is not a secret is not found in %s, but in %q", wanted, places)
				}
			}
		},
		Run: func(w *world) {
			w.Put(w.Home+"/.value", values["FROM_FILE"]+"\n")
			w.Put(w.Home+"/.printed", values["FROM_COMMAND"])
			w.Put(w.Dir+"/stored", values["FROM_AGE"])
			w.Put(w.Home+"/.config/litterbox/config.toml", `
[secrets.FROM_FILE]
from = "file:~/.value"
hosts = ["one.example"]
[secrets.FROM_COMMAND]
from = 'command:["cat", "`+w.Home+`/.printed"]'
hosts = ["two.example"]
[secrets.FROM_ENV]
from = "env:LENT"
hosts = ["three.example"]
[secrets.FROM_AGE]
from = "age:stored"
hosts = ["four.example"]
`)
			if got := w.Shell(w.Program("litterbox") + " secrets set stored --age <" + w.Dir + "/stored"); got.Code != 0 {
				w.Fatalf("storing exited %d: %s", got.Code, got.Stderr)
			}
			w.Env = append(w.Env, "LENT="+values["FROM_ENV"])
			w.sandbox()
			var words []string
			for _, value := range values {
				words = append(words, give(w, value)...)
			}
			if places := w.recorded(words...); len(places) > 0 {
				w.Errorf("values are in %q", places)
			}
			if got := w.Must("log", box); !strings.Contains(got, "made with [redacted]") {
				w.Errorf("what is said about the commands can no longer be read:\n%s", got)
			}
			w.Must("delete", box, "--force")
			if places := w.recorded(words...); len(places) > 0 {
				w.Errorf("after their sandbox is deleted, values are in %q", places)
			}
		},
	}
}
