package secret

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Kind is a kind of source.
type Kind string

// The kinds of sources.
const (
	Keyring Kind = "keyring" // the system's, where `litterbox secrets set` puts it
	Env     Kind = "env"     // a variable of the user who starts the sandbox
	File    Kind = "file"    // the content of a file of the host
	Command Kind = "command" // the output of a command on the host
	Age     Kind = "age"     // a file that litterbox has encrypted
)

// Source says where a value is read when it is used.
type Source struct {
	Kind    Kind
	Name    string   // of the entry, the variable or the file
	Command []string // for Command
}

const sourceHint = `from = "keyring:NAME", "env:NAME", "file:PATH", "age:NAME" or 'command:["pass", "show", "NAME"]'`

// ParseSource reads a source: keyring:NAME, env:NAME, file:PATH, age:NAME or
// command:["PROGRAM", "ARGUMENT"]. Its errors have kind fault.Invalid.
func ParseSource(text string) (Source, error) {
	refuse := func(cause string) (Source, error) {
		return Source{}, fault.New(fault.Invalid, "cannot use the source %q: %s", clip(text), cause).WithHint("%s", sourceHint)
	}
	kind, rest, ok := strings.Cut(text, ":")
	if !ok {
		// The text may be the value itself, which no error shows.
		return Source{}, fault.New(fault.Invalid, "cannot use the source: it does not begin with keyring:, env:, file:, age: or command:").WithHint("%s", sourceHint)
	}
	source := Source{Kind: Kind(kind), Name: rest}
	if strings.ContainsFunc(rest, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return refuse("it holds a control character")
	}
	switch source.Kind {
	case Keyring, Age:
		if !ValidEntry(rest) {
			return refuse("a name has letters, digits, dashes, dots and underscores, 128 at most")
		}
	case Env:
		if !ValidName(rest) {
			return refuse("it does not name a variable")
		}
	case File:
		if !filepath.IsAbs(rest) && !strings.HasPrefix(rest, "~/") {
			return refuse("its path does not begin with / or ~/")
		}
		source.Name = filepath.Clean(rest)
	case Command:
		source.Name = ""
		if err := json.Unmarshal([]byte(rest), &source.Command); err != nil || len(source.Command) == 0 || source.Command[0] == "" {
			return refuse("a command is a list of strings in brackets, as in JSON")
		}
	default:
		return Source{}, fault.New(fault.Invalid, "cannot use the source: it does not begin with keyring:, env:, file:, age: or command:").WithHint("%s", sourceHint)
	}
	return source, nil
}

// clip bounds how much of a source an error shows.
func clip(text string) string {
	if len(text) > 100 {
		return text[:100] + "…"
	}
	return text
}

// ValidEntry reports whether a name can be that of a stored value.
func ValidEntry(name string) bool {
	if name == "" || len(name) > longestName || name[0] == '.' || name[0] == '-' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == ""
}

// Equal reports whether two sources are the same.
func (s Source) Equal(other Source) bool {
	return s.Kind == other.Kind && s.Name == other.Name && slices.Equal(s.Command, other.Command)
}

// String writes the source as ParseSource reads it.
func (s Source) String() string {
	if s.Kind != Command {
		return string(s.Kind) + ":" + s.Name
	}
	text, _ := json.Marshal(s.Command) // strings always can be
	return string(s.Kind) + ":" + string(text)
}

// MarshalText implements encoding.TextMarshaler.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Source) UnmarshalText(text []byte) error {
	parsed, err := ParseSource(string(text))
	*s = parsed
	return err
}
