package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// nestReader reads the parts of a nested value and gathers the problems.
type nestReader struct {
	what     string // the key that errors name
	problems []problem
}

func (r *nestReader) wrong(t tree, format string, args ...any) {
	r.problems = append(r.problems, t.wrong("", r.what+": "+format, args...)...)
}

// last is the name of a part.
func (t tree) last() string { return t.name[len(t.name)-1] }

func (r *nestReader) text(t tree) string {
	text, ok := t.value.(string)
	if !ok {
		r.wrong(t, "%s must be a string", t.last())
	}
	return text
}

func (r *nestReader) truth(t tree) bool {
	truth, ok := t.value.(bool)
	if !ok {
		r.wrong(t, "%s must be true or false", t.last())
	}
	return truth
}

func (r *nestReader) port(t tree) int {
	port, ok := t.value.(int64)
	if !ok || port < 1 || port > 65535 {
		r.wrong(t, "%s must be a port from 1 to 65535", t.last())
		return 0
	}
	return int(port)
}

// table reads a table; example is one.
func (r *nestReader) table(t tree, example string) map[string]any {
	table, ok := t.value.(map[string]any)
	if !ok {
		r.wrong(t, "%s must be a table such as %s", t.last(), example)
	}
	return table
}

func (r *nestReader) texts(t tree) []string {
	items, ok := t.value.([]any)
	if !ok {
		r.wrong(t, "%s must be a list of strings", t.last())
		return nil
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			r.wrong(t, "every element of %s must be a string", t.last())
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

func (r *nestReader) command(t tree) []string {
	words := r.texts(t)
	switch {
	case len(r.problems) > 0:
	case len(words) == 0 || words[0] == "":
		r.wrong(t, "%s is empty", t.last())
	case slices.ContainsFunc(words, func(word string) bool { return strings.ContainsRune(word, 0) }):
		r.wrong(t, "%s holds a NUL byte", t.last())
	}
	return words
}

func (r *nestReader) environment(t tree) map[string]string {
	env := map[string]string{}
	table := r.table(t, `{ KEY = "value" }`)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		part := t.part(name, table[name])
		env[name] = r.text(part)
		entry := value{position: part.place(), text: env[name], name: name}
		r.problems = append(r.problems, checkEnvironment(value{items: []value{entry}})...)
	}
	return env
}

func (r *nestReader) duration(t tree, most time.Duration) time.Duration {
	text, _ := t.value.(string)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > most {
		r.wrong(t, `%s must be a time such as "10s", at most %s`, t.last(), most)
	}
	return d
}

// signal reads a name, with or without SIG.
func (r *nestReader) signal(t tree) string {
	name := strings.TrimPrefix(r.text(t), "SIG")
	known := []string{"HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CONT", "WINCH", "IO", "PWR"}
	if !slices.Contains(known, name) {
		r.wrong(t, "%s must be a signal such as \"SIGTERM\"", t.last())
	}
	return name
}
