package clients_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// provider stands in for all providers of models, each under its own name.
type provider struct {
	mu    sync.Mutex
	asked []string      // method, host and path of each request
	begun chan struct{} // a stream that waits has sent its beginning
	goOn  chan struct{} // lets it go on
	ended chan struct{} // its client has gone away
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{begun: make(chan struct{}, 8), goOn: make(chan struct{}), ended: make(chan struct{}, 8)}
	for _, name := range []string{"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com"} {
		webSite(t, outside.Host(name), p)
	}
	return p
}

func (p *provider) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

const (
	streamStart = `event: message_start
data: {"type":"message_start","message":{"type":"message","model":"claude-haiku-4-5-20251001","usage":{"input_tokens":1000,"cache_read_input_tokens":2000,"output_tokens":1}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}

`
	streamEnd = `event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":500}}

event: message_stop
data: {"type":"message_stop"}

`
)

// ServeHTTP implements http.Handler. What a request asks for decides its
// answer, but never the stated cost.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host+r.URL.Path)
	p.mu.Unlock()
	text := string(body)
	events := func(parts ...string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range parts {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	}
	switch {
	case strings.Contains(text, "fail"):
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`)
	case r.URL.Path == "/v1/messages" && strings.Contains(text, "wait"):
		events(streamStart)
		p.begun <- struct{}{}
		select {
		case <-p.goOn:
			events(streamEnd)
		case <-r.Context().Done():
			p.ended <- struct{}{}
		}
	case r.URL.Path == "/v1/messages" && strings.Contains(text, "runaway"):
		// A provider that lets the model read and write more than it was asked.
		events(streamStart, "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":900000,\"output_tokens\":900000}}\n\n")
		<-r.Context().Done()
		p.ended <- struct{}{}
	case r.URL.Path == "/v1/messages" && strings.Contains(text, "obey"):
		_, _ = io.WriteString(w, raising)
	case r.URL.Path == "/v1/messages" && strings.Contains(text, `"stream"`):
		events(streamStart, streamEnd)
	case r.URL.Path == "/v1/messages":
		// Words that the client made the model say are text, whatever they look like.
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","model":"claude-haiku-4-5","content":[{"type":"text","text":"{\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}"}],"usage":{"input_tokens":1000,"output_tokens":100}}`)
	case r.URL.Path == "/v1/chat/completions":
		events("data: {\"model\":\"gpt-5-mini\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n",
			"data: {\"model\":\"gpt-5-mini\",\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":100,\"prompt_tokens_details\":{\"cached_tokens\":400}}}\n\n", "data: [DONE]\n\n")
	case r.URL.Path == "/v1/responses":
		events("data: {\"type\":\"response.completed\",\"response\":{\"model\":\"house-model\",\"usage\":{\"input_tokens\":70,\"output_tokens\":7}}}\n\n")
	case strings.HasSuffix(r.URL.Path, ":generateContent"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100},"modelVersion":"gemini-2.5-flash"}`)
	default:
		_, _ = fmt.Fprintf(w, "%s %s\n", r.Method, r.URL.Path)
	}
}
