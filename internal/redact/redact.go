// Package redact removes secrets from text before it is written down: from
// commands and messages in commits, logs, events and records. Everything that
// litterbox records about a command passes through it when it is recorded, so
// that no later copy has to.
//
// It knows shapes and names of secrets, and values that its callers know. It
// deliberately knows no record: the writer of one says which of its fields are
// commands ([Text]) and which are prose ([Tokens]).
package redact

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Gone replaces a secret.
const Gone = "[redacted]"

// Text removes from a command, or from output, everything that looks like a
// secret by its shape or by the name it is assigned to, and all of values. In a
// JSON document it does so within each string.
func Text(text string, values ...string) string { return Secrets{Values: values}.Text(text) }

// byName removes what looks like a secret by its shape or name.
func byName(text string) string {
	if !suspicious(text) {
		return text
	}
	for _, p := range slices.Concat(named(), shapes()) {
		text = p.ReplaceAllStringFunc(text, func(found string) string {
			if count().MatchString(found) {
				return found
			}
			return p.ReplaceAllString(found, "${1}"+Gone+"${2}")
		})
	}
	return text
}

// count is a number of tokens, as models count them: "input_tokens":12.
var count = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[\w.-]*tokens["']?\s*[=:]\s*\d{1,9}[,}\])]*$`)
})

// Tokens removes from a sentence everything that has the shape of a secret and
// no other meaning, and all of values. A name alone says nothing there: "fix
// the token: it expires" stays.
func Tokens(text string, values ...string) string {
	text = byValue(text, values)
	if !suspicious(text) {
		return text
	}
	for _, p := range shapes() {
		text = p.ReplaceAllString(text, "${1}"+Gone+"${2}")
	}
	return text
}

// Argv is Text for the arguments of a command, which show where a secret ends
// whatever it contains: the value of NAME=VALUE, and the argument after --name.
func Argv(argv []string, values ...string) []string {
	clean := make([]string, len(argv))
	expected := false // the argument before was the name of a secret
	for i, argument := range argv {
		name, value, assigned := strings.Cut(argument, "=")
		isName := !strings.ContainsFunc(name, func(r rune) bool { return strings.ContainsRune(" \t\n'\"$:/;|&", r) }) && Name(name)
		script := i > 0 && strings.HasPrefix(argv[i-1], "-") && strings.HasSuffix(argv[i-1], "c")
		switch {
		case script: // of a shell, as a rule, which may begin with an assignment
			clean[i] = Text(argument, values...)
		case expected && !strings.HasPrefix(argument, "-"):
			clean[i] = Gone
		case assigned && isName && value != "":
			clean[i] = name + "=" + Gone
		default:
			clean[i] = Text(argument, values...)
		}
		expected = !assigned && isName && strings.HasPrefix(argument, "-")
	}
	return clean
}

// Name reports whether a variable or an option of this name holds a secret.
func Name(name string) bool {
	return (mayHave(name, nameWords) || mayHave(name, shortWords)) && namePattern().MatchString(name)
}

// Shorter values are not searched for: they would match half of the text.
const (
	leastNamed = 6  // bytes of the value of a variable that is named like a secret
	leastOther = 16 // of any other
)

// Values returns the secrets among variables, each KEY=VALUE: the value if the
// name suggests a secret, and any that is long, of one piece and not a path.
func Values(environment []string) []string {
	var values []string
	for _, entry := range environment {
		key, value, _ := strings.Cut(entry, "=")
		other := len(value) >= leastOther && !strings.ContainsAny(value, " \t\n/")
		if other || Name(key) && len(value) >= leastNamed {
			values = append(values, value)
		}
	}
	return values
}

// NamedValues returns the values of variables that are named like secrets.
func NamedValues(environment []string) []string {
	return Values(slices.DeleteFunc(slices.Clone(environment), func(entry string) bool {
		key, _, _ := strings.Cut(entry, "=")
		return !Name(key)
	}))
}

// byValue removes values, a longer one before those it contains.
func byValue(text string, values []string) string {
	if len(values) > 1 {
		values = slices.SortedFunc(slices.Values(values), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
	for _, value := range values {
		if len(value) < leastNamed {
			continue
		}
		text = strings.ReplaceAll(text, value, Gone)
		// As a shell's argument in single quotes.
		if quoted := strings.ReplaceAll(value, "'", `'\''`); quoted != value {
			text = strings.ReplaceAll(text, quoted, Gone)
		}
	}
	return text
}

// suspicious reports whether any of the patterns may match: searching for words
// is some forty times as fast, and nearly all output of commands has none.
func suspicious(text string) bool { return mayHave(text, nameWords) || mayHave(text, otherWords) }

// Each match of namePattern has one of nameWords, each of another pattern one of
// either.
var (
	nameWords  = []string{"token", "secret", "passw", "passphrase", "key", "credential", "pass=", "_pwd="}
	shortWords = []string{"pass", "pwd"} // of a name alone: texts are full of them
	otherWords = []string{
		"authorization", "bearer", "://", "curl",
		"gh", "glpat-", "xox", "npm_", "pypi-", "sk-", "sk_", "rk_", "akia", "asia", "aiza", "ya29.", "hf_", "dop_v1_", "eyj",
	}
)

// mayHave reports whether a text has one of some words, in letters of any case.
func mayHave(text string, words []string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return true // letters fold in ways that words do not
		}
	}
	lower := strings.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(lower, word) })
}

const secretWords = `(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)`

// They are compiled when first needed: version and help never do.
var namePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.ReplaceAll(secretWords, "_?", "[_-]?") + `|(?:^|[_-])PASS$|[_-]PWD$`)
})

func compile(texts ...string) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, text := range texts {
		all = append(all, regexp.MustCompile(text))
	}
	return all
}

// The text of groups 1 and 2 of a pattern stays.

// named matches values assigned to a name that suggests a secret.
var named = sync.OnceValue(func() []*regexp.Regexp {
	const (
		assigned = `(?i)([\w.-]*` + secretWords + `[\w.-]*["']?\s*[=:]\s*`
		short    = `(\b(?:(?:[A-Z0-9_]*_)?PASS|[A-Z0-9_]*_PWD)=` // as a shell has it: "pass: 3" is no secret
		option   = `(?i)(--?[\w-]*(?:token|secret|password|passwd|passphrase|api-?key)\s+`
		double   = `")(?:[^"\\]|\\.)+(")`
		single   = `')[^']+(')`
		bare     = `["']?)[^\s"'&;|]+`
	)
	return compile(
		assigned+double, assigned+single, assigned+bare, // NAME=value, "name": "value"
		short+double, short+single, short+bare,
		option+double, option+single, option+bare, // --name value
		`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)?\s*)(?:\[redacted\]|[\w.~+/=-]+)`,
		`(?i)(\bbearer\s+)[\w.~+/=-]{8,}`,
		`(\bcurl\b[^\n]*\s(?:-u|--user)[ =]?["']?[^\s:"']+:)[^\s"']+`,
	)
})

// shapes match texts that are secrets by themselves.
var shapes = sync.OnceValue(func() []*regexp.Regexp {
	return compile(
		`(\w+://[^\s/:@"']*:)[^\s/@"']+(@)`, // userinfo in a URL
		`()\b(?:gh[pousr]_|github_pat_|glpat-|xox[abposr]-|npm_|pypi-|sk-|sk_live_|rk_live_|AKIA|ASIA|AIza|ya29\.|hf_|dop_v1_)[\w.-]{8,}`,
		`()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`, // a JSON web token
		`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
	)
})
