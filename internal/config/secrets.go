package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// secretsMeaning documents [secrets].
const secretsMeaning = `Values that programs inside use and never see, such as API keys. Each is a separate table, ` + "`[secrets.NAME]`" + `: inside, the variable NAME holds a placeholder, and the keeper puts the value in its place on the way to the hosts that are named, and nowhere else. [secrets.md](secrets.md) says how. A secret of the repository replaces the user's of the same name as a whole.

| key | meaning |
|---|---|
| ` + "`from`" + ` | where the value comes from, read at each use: ` + "`\"keyring:NAME\"`" + ` or ` + "`\"age:NAME\"`" + `, as ` + "`litterbox secrets set NAME`" + ` stores it, ` + "`\"env:VARIABLE\"`" + ` of the caller of a command, ` + "`\"file:PATH\"`" + `, absolute or beginning with ~/, or ` + "`'command:[\"pass\", \"show\", \"x\"]'`" + `, run on the host |
| ` + "`hosts`" + ` | which hosts the value may be sent to, over TLS: ` + "`\"api.example.com\"`" + `, ` + "`\"api.example.com:8443\"`" + `, ` + "`\"*.example.com\"`" + `; without TLS only where ` + "`\"http://…\"`" + ` is written. network.allow has to allow them too |
| ` + "`in`" + ` | where in a request the placeholder is replaced: ` + "`[\"header\"]`" + ` unless set; also "query", "body" and "basic", the user name or password of HTTP's Basic scheme |

` + "```toml" + `
[secrets.ANTHROPIC_API_KEY]
from  = "keyring:anthropic"
hosts = ["api.anthropic.com"]
` + "```"

func readSecrets(c *Config, t tree) []problem {
	table, ok := t.value.(map[string]any)
	if !ok {
		return t.wrong("[secrets.API_KEY]", "secrets must be a table of secrets")
	}
	var problems []problem
	for _, name := range slices.Sorted(maps.Keys(table)) {
		entry := t.part(name, table[name])
		if !secret.ValidName(name) {
			problems = append(problems, entry.wrong("", "%q is not the name of a variable: letters, digits and underscores", name)...)
			continue
		}
		fields, ok := entry.value.(map[string]any)
		if !ok {
			problems = append(problems, entry.wrong("[secrets."+name+"]", "secret %q must be a table with from and hosts", name)...)
			continue
		}
		r := &nestReader{what: "secrets." + name}
		spec := readSecret(r, entry, name, fields)
		problems = append(problems, r.problems...)
		c.Secrets = append(c.Secrets, spec)
	}
	return problems
}

func readSecret(r *nestReader, t tree, name string, fields map[string]any) secret.Spec {
	spec := secret.Spec{Name: name}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		part := t.part(field, fields[field])
		switch field {
		case "from":
			if text := r.text(part); len(r.problems) == 0 {
				source, err := secret.ParseSource(text)
				r.refused(part, err)
				spec.From = source
			}
		case "hosts":
			for _, text := range r.texts(part) {
				host, err := secret.ParseHost(text)
				r.refused(part, err)
				if !slices.Contains(spec.Hosts, host) {
					spec.Hosts = append(spec.Hosts, host)
				}
			}
			if len(spec.Hosts) == 0 && len(r.problems) == 0 {
				r.wrong(part, "hosts must name at least one")
			}
		case "in":
			for _, text := range r.texts(part) {
				place, err := secret.ParsePlace(text)
				r.refused(part, err)
				if !slices.Contains(spec.In, place) {
					spec.In = append(spec.In, place)
				}
			}
			if len(spec.In) == 0 && len(r.problems) == 0 {
				r.wrong(part, "in must name at least one place")
			}
		case "value":
			r.wrong(part, "no configuration holds a value: litterbox secrets set NAME stores it, and from = \"keyring:NAME\" names it")
		default:
			r.wrong(part, "unknown key %q", field)
		}
	}
	for _, needed := range []string{"from", "hosts"} {
		if _, ok := fields[needed]; !ok && len(r.problems) == 0 {
			r.wrong(t, "%s is missing", needed)
		}
	}
	if spec.In == nil {
		spec.In = []secret.Place{secret.Header}
	}
	return spec
}

// refused gathers a parser's error.
func (r *nestReader) refused(t tree, err error) {
	if err != nil {
		r.wrong(t, "%s", err.Error())
	}
}

// mergeSecrets puts secrets above others, one by one.
func mergeSecrets(base, over []secret.Spec) []secret.Spec {
	merged := slices.Clone(base)
	for _, s := range over {
		merged = slices.DeleteFunc(merged, func(b secret.Spec) bool { return b.Name == s.Name })
		merged = append(merged, s)
	}
	slices.SortFunc(merged, func(a, b secret.Spec) int { return strings.Compare(a.Name, b.Name) })
	return merged
}
