package meter

import (
	"bytes"
	"mime"
	"strings"
)

// Answer reads the cost from an answer while it passes. It holds nothing back and
// keeps little: a part of one string, and counters.
type Answer struct {
	wire   Wire
	events bool // server-sent events, each with a JSON text
	scan   scanner
	broken bool // JSON of which the rest cannot be read

	line   []byte // the beginning of a line of an event whose field is not known yet
	inData bool   // the rest of the line is data
	skip   bool   // the rest of the line is skipped
	lone   bool   // the line before ended with CR

	model, tier string
	claimed     Money // what the answer says that it has cost
	raw         counters
	bytes       int64
	seen        bool // any figure at all
	final       bool // the figure of the whole output
	last        bool // the mark that nothing more comes

	// Of the event that is being read:
	kind    string // its type
	whole   bool   // it has a possible figure of the whole output
	finish  bool   // it says why the model stopped
	literal string // a possible "[DONE]"
}

// counters are the figures as the formats give them. Each figure is the largest
// that was seen: streams repeat them with growing numbers, and none can lower an
// earlier one.
type counters struct {
	input, output, cached, written, writtenHour, searches int64
	thought, tools                                        int64 // Gemini counts them apart
}

// NewAnswer reads an answer in the given format; its Content-Type says how it is
// split.
func NewAnswer(wire Wire, contentType string) *Answer {
	a := &Answer{wire: wire}
	kind, _, err := mime.ParseMediaType(contentType)
	a.events = err == nil && kind == "text/event-stream"
	a.scan.value = a.take
	return a
}

// Write takes the next bytes. It never fails: an answer that cannot be read has
// no figures, and so counts as the most that it may have cost.
func (a *Answer) Write(p []byte) (int, error) {
	a.bytes = Sum(a.bytes, int64(len(p)))
	if a.events {
		for rest := p; len(rest) > 0; {
			if a.skip || a.inData && !a.fresh() { // most bytes
				n := bytes.IndexAny(rest, "\r\n")
				if n < 0 {
					n = len(rest)
				}
				if a.inData {
					a.feed(rest[:n])
				}
				if rest = rest[n:]; len(rest) == 0 {
					break
				}
			}
			a.event(rest[0])
			rest = rest[1:]
		}
		return len(p), nil
	}
	a.feed(p)
	return len(p), nil
}

// fresh reports whether nothing of an event's text was read yet.
func (a *Answer) fresh() bool {
	return a.scan.state == wantValue && len(a.scan.stack) == 0 && a.scan.err == nil
}

func (a *Answer) feed(p []byte) {
	if !a.broken && a.scan.write(p) != nil {
		a.broken = true
	}
}

// maxField is longer than each name of a field of an event.
const maxField = 16

// event reads server-sent events (WHATWG HTML, section 9.2): lines that end
// with LF, CR or both, fields with a colon, an empty line at the end of an event.
func (a *Answer) event(c byte) {
	if c == '\n' && a.lone {
		a.lone = false
		return // the second half of CR LF
	}
	a.lone = c == '\r'
	if c == '\n' || c == '\r' {
		if len(a.line) == 0 && !a.inData && !a.skip {
			a.dispatch()
		}
		if a.inData {
			a.feed([]byte{'\n'}) // between two lines of data
		}
		a.line, a.inData, a.skip = a.line[:0], false, false
		return
	}
	switch {
	case a.skip:
	case a.inData:
		a.data(c)
	default:
		a.line = append(a.line, c)
		if c == ':' {
			name := string(bytes.TrimSuffix(a.line, []byte{':'}))
			a.line = a.line[:0]
			a.inData, a.skip = name == "data", name != "data"
		} else if len(a.line) > maxField {
			a.skip = true
		}
	}
}

// data is one byte of the data of an event. "[DONE]" ends OpenAI's streams.
func (a *Answer) data(c byte) {
	if a.fresh() && (c == '[' || len(a.literal) > 0) {
		if a.literal += string(c); strings.HasPrefix("[DONE]", a.literal) {
			a.last = a.last || a.literal == "[DONE]"
			return
		}
		text := a.literal
		a.literal = ""
		a.feed([]byte(text))
		return
	}
	a.feed([]byte{c})
}

// dispatch ends an event.
func (a *Answer) dispatch() {
	if !a.broken && a.scan.end() == nil {
		a.ended()
	}
	a.scan.reset()
	a.broken, a.kind, a.literal, a.whole, a.finish = false, "", "", false, false
}

// ended looks at a text as a whole: an event, or the only one.
func (a *Answer) ended() {
	// At the start of a message Anthropic gives a figure of output, too.
	a.final = a.final || a.whole && a.kind != "message_start"
	switch a.kind {
	case "message_stop", "response.completed", "response.incomplete", "response.failed":
		a.last = true
	}
	a.last = a.last || a.finish && a.whole
}

// Outcome is the result of reading an answer.
type Outcome struct {
	Usage Usage
	Model string // as the answer names it; empty when it does not
	Tier  string // of service, where the answer names one
	// Claimed is what the call has cost as the answer says; 0 where it does not.
	Claimed Money
	// Known reports whether there was any figure, and Exact whether the figures
	// are those of the whole answer.
	Known, Exact bool
	Bytes        int64 // of the answer
}

// Outcome gives the figures read so far; whole says that the answer ended
// properly, and was not cut off.
func (a *Answer) Outcome(whole bool) Outcome {
	if !a.broken && a.scan.state == done {
		a.ended()
		a.last = a.last || whole && !a.events
	}
	// A format without a last event is over with the stream.
	if whole && a.events && (a.wire == Gemini || a.wire == Chat) {
		a.last = true
	}
	return Outcome{Usage: a.usage(), Model: a.model, Tier: a.tier, Claimed: a.claimed, Known: a.seen, Exact: a.final && a.last, Bytes: a.bytes}
}

// usage brings the formats to one meaning.
func (a *Answer) usage() Usage {
	r := a.raw
	u := Usage{Input: r.input, Output: r.output, CacheRead: r.cached, CacheWrite: r.written, CacheWriteHour: min(r.writtenHour, r.written), Searches: r.searches}
	switch a.wire {
	case Chat, Responses: // cached tokens are part of the input
		u.CacheRead = min(r.cached, r.input)
		u.Input = r.input - u.CacheRead
	case Gemini:
		u.CacheRead = min(r.cached, r.input)
		u.Input = Sum(r.input-u.CacheRead, r.tools)
		u.Output = Sum(r.output, r.thought)
	}
	return u
}

// take is one value of the answer.
func (a *Answer) take(path []string, deep int, v scalar) {
	if deep > maxNamed || deep != len(path) {
		return
	}
	if a.wire == Gemini && deep > 0 && path[0] == "" {
		path = path[1:] // a stream as one long list
	}
	if len(path) == 1 && path[0] == "type" && v.kind == '"' {
		a.kind = v.text
	}
	if len(path) > 1 && (path[0] == "message" && a.wire == Messages || path[0] == "response" && a.wire != Messages) {
		path = path[1:] // events carry the answer in an envelope
	}
	at := strings.Join(path, ".")
	if v.kind == '"' && !v.cut {
		switch at {
		case "model", "modelVersion":
			if len(v.text) <= maxModel {
				a.model = v.text
			}
		case "candidates..finishReason":
			a.finish = a.wire == Gemini
		case "service_tier", "usage.service_tier", "usage.speed":
			if a.tier == "" || ordinary(a.tier) {
				a.tier = v.text
			}
		}
		return
	}
	if v.kind != '0' {
		return
	}
	if amount := v.money(claims(at)); amount > 0 && a.wire != Gemini {
		a.claimed = max(a.claimed, amount)
	}
	if into, whole := a.counter(at); into != nil {
		*into = max(*into, v.integer())
		a.seen = true
		a.whole = a.whole || whole
	}
}

// claims is the worth of one unit of a figure that says what a call has cost, in
// dollars; 0 for any other figure.
func claims(at string) float64 {
	switch at {
	case "usage.cost": // OpenRouter and gateways like it
		return 1
	case "usage.cost_in_usd_ticks": // xAI
		return 1e-10
	}
	return 0
}

// maxModel bounds the name of a model.
const maxModel = 128

// counter is where a figure goes, and whether it is that of the output, which
// comes last.
func (a *Answer) counter(at string) (into *int64, whole bool) {
	r := &a.raw
	switch a.wire {
	case Messages:
		switch at {
		case "usage.input_tokens":
			return &r.input, false
		case "usage.output_tokens":
			return &r.output, true
		case "usage.cache_read_input_tokens":
			return &r.cached, false
		case "usage.cache_creation_input_tokens":
			return &r.written, false
		case "usage.cache_creation.ephemeral_1h_input_tokens":
			return &r.writtenHour, false
		case "usage.server_tool_use.web_search_requests":
			return &r.searches, false
		}
	case Chat:
		switch at {
		case "usage.prompt_tokens":
			return &r.input, false
		case "usage.completion_tokens":
			return &r.output, true
		case "usage.prompt_tokens_details.cached_tokens":
			return &r.cached, false
		}
	case Responses:
		switch at {
		case "usage.input_tokens":
			return &r.input, false
		case "usage.output_tokens":
			return &r.output, true
		case "usage.input_tokens_details.cached_tokens":
			return &r.cached, false
		}
	case Gemini:
		switch at {
		case "usageMetadata.promptTokenCount":
			return &r.input, true // an empty answer has no count of output
		case "usageMetadata.candidatesTokenCount":
			return &r.output, true
		case "usageMetadata.cachedContentTokenCount":
			return &r.cached, false
		case "usageMetadata.thoughtsTokenCount":
			return &r.thought, false
		case "usageMetadata.toolUsePromptTokenCount":
			return &r.tools, false
		}
	}
	return nil, false
}

// ordinary reports whether a tier of service is charged at the prices of the
// table, or below them.
func ordinary(tier string) bool {
	switch tier {
	case "", "auto", "default", "standard", "standard_only", "flex", "on_demand", "batch":
		return true
	}
	return false
}
