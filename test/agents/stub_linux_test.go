package agents_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// call is one tool call that the model makes.
type call struct {
	tool string // the end of its name, as the client offers it
	args map[string]any
}

// model stands in for a model: whatever it is told, it makes the calls of its
// script in order and then says that it is done. It speaks the APIs of the four
// clients, streaming. It knows its place in the script by the number of results
// in the conversation.
type model struct {
	*httptest.Server
	script []call

	mu        sync.Mutex
	offered   []string // tools, in the last request that had any
	described int      // bytes by which that request describes those of litterbox
	requests  int      // that had tools
	results   []string // in the longest conversation
	strange   []string // requests that it does not know
}

// declared is a tool as a client describes it to its model.
type declared struct {
	Name  string
	bytes int // of the description
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *declared) UnmarshalJSON(content []byte) error {
	var named struct{ Name string }
	err := json.Unmarshal(content, &named)
	d.Name, d.bytes = named.Name, len(content)
	return err
}

// isOurs reports whether a tool is one of litterbox, as the client names it.
func isOurs(name string) bool { return strings.Contains(plain(name), "sandbox-") }

// plain is a tool's name without what clients do to dashes.
func plain(name string) string { return strings.ReplaceAll(name, "_", "-") }

func newModel(t *testing.T, script ...call) *model {
	m := &model{script: script}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("POST /v1/chat/completions", m.completions)
	mux.HandleFunc("POST /v1beta/models/{model}", m.generate)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.strange = append(m.strange, r.Method+" "+r.URL.Path)
		m.mu.Unlock()
		http.NotFound(w, r)
	})
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// next decides what to answer: a call with the name that the client knows, or
// nil at the end. Requests without tools are for titles and the like.
func (m *model) next(tools []declared, results []string) *call {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(tools) == 0 {
		return nil
	}
	m.requests++
	m.offered, m.described = nil, 0
	for _, tool := range tools {
		m.offered = append(m.offered, tool.Name)
		if isOurs(tool.Name) {
			m.described += tool.bytes
		}
	}
	if len(results) > len(m.results) {
		m.results = results
	}
	if len(results) >= len(m.script) {
		return nil
	}
	c := m.script[len(results)]
	if i := slices.IndexFunc(m.offered, func(name string) bool {
		return strings.HasPrefix(c.tool, "sandbox-") && strings.HasSuffix(plain(name), plain(c.tool))
	}); i >= 0 {
		c.tool = m.offered[i]
	}
	return &c
}

func read(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

type object = map[string]any

// stream writes server-sent events.
type stream struct{ http.ResponseWriter }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return stream{w}
}

func (s stream) event(name string, value any) {
	if name != "" {
		fmt.Fprintf(s, "event: %s\n", name)
	}
	fmt.Fprintf(s, "data: %s\n\n", text(value))
	if f, ok := s.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// messages is Anthropic's API.
func (m *model) messages(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Tools    []declared
		Messages []struct{ Content any }
		Stream   bool
		Model    string
	}
	if err := read(r, &q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var results []string
	for _, message := range q.Messages {
		blocks, _ := message.Content.([]any)
		for _, block := range blocks {
			if b, ok := block.(object); ok && b["type"] == "tool_result" {
				results = append(results, text(b))
			}
		}
	}
	content, stop := object{"type": "text", "text": ""}, "end_turn"
	delta := object{"type": "text_delta", "text": "done"}
	if c := m.next(q.Tools, results); c != nil {
		content, stop = object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(results)), "name": c.tool, "input": object{}}, "tool_use"
		delta = object{"type": "input_json_delta", "partial_json": text(c.args)}
	}
	usage := object{"input_tokens": 1, "output_tokens": 1}
	message := object{"id": "msg_1", "type": "message", "role": "assistant", "model": q.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}
	if !q.Stream {
		message["content"], message["stop_reason"] = []any{object{"type": "text", "text": "done"}}, "end_turn"
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, text(message))
		return
	}
	s := newStream(w)
	s.event("message_start", object{"type": "message_start", "message": message})
	s.event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": content})
	s.event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	s.event("content_block_stop", object{"type": "content_block_stop", "index": 0})
	s.event("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 1}})
	s.event("message_stop", object{"type": "message_stop"})
}

// responses is OpenAI's newer API, which Codex speaks.
func (m *model) responses(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Tools []struct {
			Type, Name string
			Tools      []declared
		}
		Input []struct {
			Type   string
			Output any
		}
	}
	if err := read(r, &q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var offered []declared
	var results []string
	namespaces := map[string]string{}
	for _, tool := range q.Tools {
		if tool.Type != "namespace" {
			offered = append(offered, declared{Name: tool.Name})
		}
		for _, inner := range tool.Tools {
			offered = append(offered, inner)
			namespaces[inner.Name] = tool.Name
		}
	}
	for _, item := range q.Input {
		if strings.HasSuffix(item.Type, "_call_output") {
			results = append(results, text(item.Output))
		}
	}
	item := object{"type": "message", "role": "assistant", "id": "msg_1", "content": []any{object{"type": "output_text", "text": "done"}}}
	if c := m.next(offered, results); c != nil {
		item = object{"type": "function_call", "id": "fc_1", "call_id": fmt.Sprintf("call_%d", len(results)), "name": c.tool, "arguments": text(c.args)}
		if namespace := namespaces[c.tool]; namespace != "" {
			item["namespace"] = namespace
		}
		if input, ok := c.args["*"]; ok { // a tool that takes text
			item = object{"type": "custom_tool_call", "id": "ctc_1", "call_id": item["call_id"], "name": c.tool, "input": input}
		}
	}
	s := newStream(w)
	s.event("response.created", object{"type": "response.created", "response": object{"id": "resp_1"}})
	s.event("response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	s.event("response.completed", object{"type": "response.completed", "response": object{
		"id": "resp_1", "usage": object{"input_tokens": 1, "input_tokens_details": nil, "output_tokens": 1, "output_tokens_details": nil, "total_tokens": 2},
	}})
}

// completions is OpenAI's older API, which many others speak.
func (m *model) completions(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Tools []struct {
			Function declared
		}
		Messages []struct {
			Role    string
			Content any
		}
	}
	if err := read(r, &q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var offered []declared
	var results []string
	for _, tool := range q.Tools {
		offered = append(offered, tool.Function)
	}
	for _, message := range q.Messages {
		if message.Role == "tool" {
			results = append(results, text(message.Content))
		}
	}
	delta, finish := object{"role": "assistant", "content": "done"}, "stop"
	if c := m.next(offered, results); c != nil {
		finish = "tool_calls"
		delta = object{"role": "assistant", "tool_calls": []any{object{
			"index": 0, "id": fmt.Sprintf("call_%d", len(results)), "type": "function", "function": object{"name": c.tool, "arguments": text(c.args)},
		}}}
	}
	s := newStream(w)
	chunk := func(delta object, finish any) object {
		return object{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "stub", "choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	s.event("", chunk(delta, nil))
	last := chunk(object{}, finish)
	last["usage"] = object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	s.event("", last)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// generate is Gemini's API.
func (m *model) generate(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Tools []struct {
			FunctionDeclarations []declared
		}
		Contents []struct {
			Parts []struct{ FunctionResponse any }
		}
	}
	if err := read(r, &q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var offered []declared
	var results []string
	for _, tool := range q.Tools {
		offered = append(offered, tool.FunctionDeclarations...)
	}
	for _, content := range q.Contents {
		for _, part := range content.Parts {
			if part.FunctionResponse != nil {
				results = append(results, text(part.FunctionResponse))
			}
		}
	}
	part := object{"text": "done"}
	if c := m.next(offered, results); c != nil {
		part = object{"functionCall": object{"id": fmt.Sprintf("call_%d", len(results)), "name": c.tool, "args": c.args}}
	}
	answer := object{
		"candidates":    []any{object{"index": 0, "content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}, "modelVersion": "stub",
	}
	if !strings.HasSuffix(r.PathValue("model"), ":streamGenerateContent") {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, text(answer))
		return
	}
	newStream(w).event("", answer)
}
