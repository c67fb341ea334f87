package attack_test

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// secretAttacks look for secrets of commands in everything recorded about
// them, which is pushed, backed up and shown.
func secretAttacks() []attack {
	return []attack{valuesInRecords(), {
		Name: "secrets of commands in records",
		Control: func(w *world) {
			w.sandbox()
			w.Must("exec", box, "-m", "the words plainmessage", "--", "true", "plaincommand")
			for word, wanted := range map[string][]string{
				"plainmessage": {"iterations.jsonl", "log.jsonl", "events.jsonl", "the repository's objects", "litterbox log", "litterbox audit --json"},
				"plaincommand": {"iterations.jsonl", "log.jsonl", "cycles.jsonl", "events.jsonl", "the repository's objects", "litterbox cycles", "litterbox audit"},
			} {
				places := w.recorded(word)
				for _, place := range wanted {
					if !slices.ContainsFunc(places, func(p string) bool { return strings.HasSuffix(p, place) }) {
						w.Errorf("%q is not found in %s, but in %q", word, place, places)
					}
				}
			}
		},
		Run: func(w *world) {
			w.sandbox()
			own := rand.Text()
			w.Env = append(w.Env, "DEPLOY_SECRET="+own)
			secrets := []string{own}
			secret := func(prefix string) string {
				made := prefix + rand.Text()
				secrets = append(secrets, made[len(prefix):])
				return made
			}
			exec := func(args ...string) { w.Must(append([]string{"exec", box}, args...)...) }
			exec("--", "sh", "-c", "TOKEN="+secret("ghp_")+" true")
			exec("--", "env", "DB_PASSWORD=two words "+secret(""), "true")
			exec("--", "sh", "-c", `DB_PASSWORD="two words `+secret("")+`" true`)
			exec("--", "sh", "-c", "DB_PASSWORD='two words "+secret("")+"' true")
			exec("--", "sh", "-c", "true curl -u me:"+secret("")+" http://host/")
			exec("--", "true", "--api-key", "two words "+secret(""))
			exec("--", "true", "-H", "Authorization: Bearer "+secret(""))
			exec("--", "true", "https://me:"+secret("")+"@host/")
			exec("--", "true", secret("eyJhbGciOiJI.")+"."+secret(""))
			exec("--", "true", "-----BEGIN PRIVATE KEY-----\n"+secret("")+"\n-----END PRIVATE KEY-----")
			exec("--", "true", own)
			value := secret("")
			exec("-e", "API_TOKEN="+value, "--", "sh", "-c", "true "+value)
			exec("-e", "LICENCE="+value, "-m", "with "+value, "--", "true", "it's", value)
			exec("-m", "install with "+secret("ghp_")+" of the robot", "--", "true")
			if got := w.Litterbox("exec", box, "--", "sh", "-c", "TOKEN="+secret("")+" exit 3"); got.Code != 3 {
				w.Errorf("%d: %s", got.Code, got.Stderr)
			}
			if got := w.Litterbox("exec", box, "--timeout", "1s", "--", "sh", "-c", "TOKEN="+secret("")+" sleep 100"); got.Code != 124 {
				w.Errorf("%d: %s", got.Code, got.Stderr)
			}
			w.Must("cp", "-m", "copied with "+secret("glpat-"), filepath.Join(w.Repo, "README"), box+":copied")
			w.Must("milestone", box, "-m", "made with "+secret("ghp_"))
			if places := w.recorded(secrets...); len(places) > 0 {
				w.Errorf("a secret is in %q", places)
			}
			if got := w.Must("log", box); !strings.Contains(got, "install with [redacted] of the robot") {
				w.Errorf("what is said about the commands can no longer be read:\n%s", got)
			}
			w.Must("delete", box, "--force")
			if places := w.recorded(secrets...); len(places) > 0 {
				w.Errorf("after its sandbox is deleted, a secret is in %q", places)
			}
		},
	}}
}

// recorded names the places of any of some words: files of litterbox's state, objects
// of the repository, whatever names them, and the output of the commands.
func (w *world) recorded(words ...string) []string {
	w.Helper()
	has := func(text string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
	}
	var places []string
	err := filepath.WalkDir(w.State, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // gone meanwhile
		}
		if content, err := os.ReadFile(path); err == nil && has(string(content)) {
			places = append(places, path)
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	if got := w.Command(w.Repo, "git", "cat-file", "--batch-all-objects", "--batch", "--unordered"); has(got.Stdout) {
		places = append(places, "the repository's objects")
	}
	for _, args := range [][]string{
		{"log", box}, {"log", box, "--json"}, {"cycles", box}, {"cycles", box, "--json"}, {"events", box}, {"events", box, "--json"},
		{"audit"}, {"audit", "--json"}, {"status", box}, {"status", box, "--json"}, {"list", "--json"},
	} {
		if got := w.Litterbox(args...); has(got.Stdout + got.Stderr) {
			places = append(places, "litterbox "+strings.TrimSuffix(strings.Join(args, " "), " "+box))
		}
	}
	return places
}
