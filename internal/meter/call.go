package meter

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Call is what a request tells before it is sent.
type Call struct {
	Model  string
	Bytes  int64 // of the request: no text has more tokens than bytes
	Output int64 // the most tokens of each answer; 0 where the request sets none
	Copies int64 // requested answers, 1 and more
	Stream bool
	// Outside says that the model reads more than the request: an earlier answer,
	// a file, a page, the findings of a tool of the provider.
	Outside   bool
	Images    int64  // in the request
	Caches    bool   // it may write to the provider's cache
	CacheHour bool   // for an hour
	Tier      string // of service
	Later     bool   // it is answered later, elsewhere
}

// Unclear is the reason why a request's demand cannot be told, worded to follow
// "the request".
type Unclear struct{ Why string }

func (u *Unclear) Error() string { return "the request " + u.Why }

// ReadCall reads the request of a call of a model. A request that servers could
// read in two ways is an *Unclear: one of them may be dearer.
func ReadCall(route Route, body io.Reader) (Call, error) {
	c := caller{route: route, call: Call{Model: route.Model, Copies: 1}}
	s := scanner{name: c.name, value: c.value}
	buffer := make([]byte, 32<<10)
	for {
		n, err := body.Read(buffer)
		c.call.Bytes = Sum(c.call.Bytes, int64(n))
		if s.write(buffer[:n]) != nil {
			return c.call, &Unclear{"is not JSON"}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return c.call, err
		}
	}
	if s.end() != nil {
		return c.call, &Unclear{"is not JSON"}
	}
	if c.twice != "" {
		return c.call, &Unclear{fmt.Sprintf("has %q twice", c.twice)}
	}
	if c.wrong != "" {
		return c.call, &Unclear{fmt.Sprintf("has a value for %q that is not understood", c.wrong)}
	}
	if c.call.Model == "" {
		return c.call, &Unclear{"names no model"}
	}
	return c.call, nil
}

type caller struct {
	route Route
	call  Call
	had   map[string]bool
	twice string
	wrong string
}

// telling are the names on which the cost depends, at their places.
func telling(at string) (what string, ok bool) {
	switch at {
	case "model":
		return "model", true
	case "max_tokens", "max_completion_tokens", "max_output_tokens", "generationconfig.maxoutputtokens":
		return "output", true
	case "n", "generationconfig.candidatecount":
		return "copies", true
	case "stream", "background", "speed":
		return at, true
	case "service_tier", "servicetier":
		return "tier", true
	case "generationconfig", "request":
		return "", true
	}
	return "", false
}

// place is a path in a neutral spelling: Gemini's servers read both
// maxOutputTokens and max_output_tokens (ProtoJSON).
func (c *caller) place(path []string) string {
	if c.route.Wire != Gemini {
		return strings.Join(path, ".")
	}
	if len(path) > 1 && path[0] == "request" { // Code Assist
		path = path[1:]
	}
	at := strings.Join(path, ".")
	if at == "model" || at == "request" {
		return at
	}
	return strings.ToLower(strings.ReplaceAll(at, "_", ""))
}

// name notes names that make a call dearer, and names that occur twice.
func (c *caller) name(path []string, deep int) {
	if deep != len(path) {
		return
	}
	last := path[len(path)-1]
	if last == "cache_control" {
		c.call.Caches = true
	}
	if path[0] == "tools" && deep == 3 && outsideTool(plain(last)) { // as {"googleSearch": {}}
		c.call.Outside = true
	}
	if deep > 3 {
		return
	}
	at := c.place(path)
	if _, ok := telling(at); !ok {
		return
	}
	if c.had == nil {
		c.had = map[string]bool{}
	}
	if c.had[at] {
		c.twice = last
	}
	c.had[at] = true
}

// plain is a name in a neutral spelling.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

func outsideTool(name string) bool {
	switch name {
	case "googlesearch", "googlesearchretrieval", "urlcontext", "codeexecution", "googlemaps", "filesearch", "computeruse", "enterprisewebsearch", "mcpservers":
		return true
	}
	return false
}

// reads notes values that let the model read more than the request holds.
// Arguments and descriptions of tools have any names.
func (c *caller) reads(path []string, v scalar) {
	if path[0] == "tools" {
		// Tools that the provider runs by itself have types of their own.
		if len(path) == 3 && path[2] == "type" && c.route.Wire != Gemini {
			switch kind, _, _ := strings.Cut(v.text, "_20"); kind { // a date
			case "function", "custom", "namespace", "local_shell", "shell", "apply_patch", "bash", "text_editor", "memory", "computer":
			default:
				c.call.Outside = true
			}
		}
		return
	}
	if c.route.Wire == Gemini && path[0] == "request" {
		path = path[1:]
	}
	for i, name := range path {
		name = plain(name)
		switch {
		case i > 0 && (name == "input" || name == "args" || name == "arguments" || name == "response"):
			return
		case name == "mediatype" || name == "mimetype" && i == len(path)-1:
			if strings.HasPrefix(v.text, "image/") {
				c.call.Images++
			} else if !strings.HasPrefix(v.text, "text/") && v.text != "application/json" {
				c.call.Outside = true // a page of a document costs the same whatever it shows
			}
		case name == "imageurl" && strings.HasPrefix(v.text, "data:"), name == "imageurl" && i < len(path)-1 && path[i+1] == "detail":
			c.call.Images++
			return
		case name == "url" && i > 0 && path[i-1] == "source", name == "fileid", name == "filedata", name == "fileuri", name == "imageurl", name == "fileurl":
			c.call.Outside = true
		case i == 0 && (name == "previousresponseid" || name == "conversation" || name == "prompt" || name == "cachedcontent" || name == "container" ||
			name == "mcpservers" || name == "websearchoptions"):
			c.call.Outside = true
		case name == "type" && v.text == "item_reference":
			c.call.Outside = true
		}
	}
}

func (c *caller) value(path []string, deep int, v scalar) {
	if deep != len(path) {
		return
	}
	if len(path) > 1 && path[len(path)-1] == "ttl" && path[len(path)-2] == "cache_control" {
		c.call.CacheHour = true
	}
	if v.kind != 'n' && deep > 0 {
		c.reads(path, v)
	}
	at := c.place(path)
	what, ok := telling(at)
	if !ok || deep == 0 {
		return
	}
	text := path[len(path)-1]
	switch what {
	case "model":
		if c.route.Model != "" {
			return // the path says which
		}
		if v.kind != '"' || v.cut || len(v.text) > maxModel || !utf8.ValidString(v.text) {
			c.wrong = text
		}
		c.call.Model = v.text
	case "output", "copies":
		if v.kind == 'n' {
			return
		}
		if v.kind != '0' || v.integer() < 1 {
			c.wrong = text
			return
		}
		if what == "copies" {
			c.call.Copies = max(c.call.Copies, v.integer())
		} else {
			// Of two names for the same value the larger counts.
			c.call.Output = max(c.call.Output, v.integer())
		}
	case "stream":
		c.call.Stream = v.kind == 't'
	case "background":
		c.call.Later = v.kind == 't'
	case "tier", "speed":
		if v.kind != '"' && v.kind != 'n' || v.cut {
			c.wrong = text
		}
		if !ordinary(v.text) {
			c.call.Tier = v.text
		}
	}
}
