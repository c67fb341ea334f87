package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Kind says what an event is.
type Kind string

// The kinds of events.
const (
	Begin   Kind = "begin"   // a conversation: Session, Model, Version
	Text    Kind = "text"    // text from the model
	Thought Kind = "thought" // its thinking
	Command Kind = "command" // it runs Text; About says what for
	Edit    Kind = "edit"    // it changes the file Path
	Tool    Kind = "tool"    // another Tool; Text has its arguments
	Output  Kind = "output"  // the result of a command or tool
	Usage   Kind = "usage"   // tokens since the last of its kind, and their cost as the client works it out
	Warning Kind = "warning"
	Result  Kind = "result" // a turn is over; Failed when not well
	Line    Kind = "line"   // any other line
)

// Event is one event of a client's stream.
type Event struct {
	Kind    Kind    `json:"kind"`
	Text    string  `json:"text,omitempty"`
	About   string  `json:"about,omitempty"`
	Tool    string  `json:"tool,omitempty"`
	Path    string  `json:"path,omitempty"`
	Failed  bool    `json:"failed,omitempty"`
	Session string  `json:"session,omitempty"`
	Model   string  `json:"model,omitempty"`
	Version string  `json:"version,omitempty"`
	Usage   Tokens  `json:"usage,omitzero"`
	CostUSD float64 `json:"cost_usd,omitempty"`
}

// Tokens are the tokens that a model has read and written.
type Tokens struct {
	In     int64 `json:"in"`
	Cached int64 `json:"cached"`
	Out    int64 `json:"out"`
}

// Reader makes events of the lines that a client prints, in order. It takes any
// input; an unknown line becomes an event of the kind [Line], or none.
type Reader interface {
	Read(line []byte) []Event
}

// lines reads a client that prints plain text.
type lines struct{}

func (lines) Read(line []byte) []Event { return raw(line) }

func raw(line []byte) []Event {
	text := strings.TrimRight(string(line), " \t\r\n")
	if text == "" {
		return nil
	}
	return []Event{{Kind: Line, Text: text}}
}

// decode reads a line that is an object. Fields of an unexpected type do not lose
// the others.
func decode(line []byte, into any) bool {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' || !json.Valid(line) {
		return false
	}
	_ = json.Unmarshal(line, into) // it goes on after a field of the wrong type
	return true
}

// block is one part of a message of Anthropic's API.
type block struct {
	Type     string         `json:"type"`
	Text     string         `json:"text"`
	Thinking string         `json:"thinking"`
	Name     string         `json:"name"`
	Input    map[string]any `json:"input"`
	Content  flexible       `json:"content"`
	IsError  bool           `json:"is_error"`
}

// flexible is a text or a list of blocks.
type flexible []byte

func (f *flexible) UnmarshalJSON(data []byte) error {
	*f = slices.Clone(data)
	return nil
}

func (f flexible) blocks() []block {
	var list []block
	if json.Unmarshal(f, &list) != nil {
		var text string
		if json.Unmarshal(f, &text) == nil && text != "" {
			return []block{{Type: "text", Text: text}}
		}
	}
	return list
}

func (f flexible) text() string {
	var parts []string
	for _, b := range f.blocks() {
		if b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func str(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// brief gives the arguments of a tool in a few words.
func brief(input map[string]any) string {
	var parts []string
	for key := range input {
		parts = append(parts, key)
	}
	slices.Sort(parts)
	for i, key := range parts {
		value := input[key]
		if s, ok := value.(string); ok {
			value = shorten(s, 80)
		} else if _, nested := value.(map[string]any); nested {
			value = "…"
		} else if list, ok := value.([]any); ok {
			value = fmt.Sprintf("%d of them", len(list))
		}
		parts[i] = fmt.Sprintf("%s=%v", key, value)
	}
	return shorten(strings.Join(parts, " "), 200)
}

// shorten is the first line of a text, cut.
func shorten(text string, most int) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(line)
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	if strings.TrimSpace(rest) != "" {
		return line + " …"
	}
	return line
}

// Summary sums up a stream so far.
type Summary struct {
	Session  string  `json:"session,omitempty"`
	Model    string  `json:"model,omitempty"`
	Version  string  `json:"version,omitempty"`
	Usage    Tokens  `json:"usage"`
	CostUSD  float64 `json:"cost_usd,omitempty"`
	Commands int     `json:"commands"`
	Edits    int     `json:"edits"`
	Ended    bool    `json:"ended"` // a turn is over
	Failed   bool    `json:"failed,omitempty"`
	Last     string  `json:"last,omitempty"`  // its last text
	Doing    string  `json:"doing,omitempty"` // what it says that it is doing
}

// longestLast bounds how much of the last text is kept.
const longestLast = 4 << 10

// Add takes one more event into account.
func (s *Summary) Add(e Event) {
	s.Session, s.Model, s.Version = first(e.Session, s.Session), first(e.Model, s.Model), first(e.Version, s.Version)
	switch e.Kind {
	case Text:
		s.Last = e.Text[:min(len(e.Text), longestLast)]
		s.Doing = first(sentence(e.Text), s.Doing)
		s.Ended = false
	case Command:
		s.Commands++
		s.Ended = false
		s.Doing = first(sentence(e.About), s.Doing)
	case Edit:
		s.Edits++
		s.Ended = false
	case Usage:
		s.Usage.In += e.Usage.In
		s.Usage.Cached += e.Usage.Cached
		s.Usage.Out += e.Usage.Out
		s.CostUSD += e.CostUSD
	case Result:
		s.Ended, s.Failed = true, e.Failed
		if e.Text != "" {
			s.Last = e.Text[:min(len(e.Text), longestLast)]
		}
	}
}

// sentence is the first sentence of what a model says, as the subject of a
// commit.
func sentence(text string) string {
	const longest = 72
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.TrimLeft(line, "#*->` "))
	for _, end := range []string{". ", "! ", "? ", ": "} {
		if head, _, found := strings.Cut(line, end); found && len(head) > 8 {
			line = head
		}
	}
	return shorten(strings.TrimRight(line, ".:!? "), longest)
}
