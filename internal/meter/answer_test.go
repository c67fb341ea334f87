package meter_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/meter"
)

const (
	events = "text/event-stream; charset=utf-8"
	plain  = "application/json"
)

// sample is an answer as a provider sends it.
type sample struct {
	name string
	wire meter.Wire
	kind string
	text string
	want meter.Outcome // without Bytes
}

func samples() []sample {
	return []sample{
		{"messages", meter.Messages, plain,
			`{"id":"m","type":"message","model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"{\"usage\":{\"output_tokens\":9}}"}],"stop_reason":"end_turn",
			"usage":{"input_tokens":10,"cache_creation_input_tokens":300,"cache_read_input_tokens":2000,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},"output_tokens":5,"service_tier":"standard","server_tool_use":{"web_search_requests":2}}}`,
			meter.Outcome{Usage: meter.Usage{Input: 10, Output: 5, CacheRead: 2000, CacheWrite: 300, CacheWriteHour: 200, Searches: 2}, Model: "claude-sonnet-4-5-20250929", Tier: "standard", Known: true, Exact: true}},
		{"messages as a stream", meter.Messages, events,
			"event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-haiku-4-5\",\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":3,\"output_tokens\":1}}}\r\n\r\n" +
				"event: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\n" +
				"event: content_block_delta\r\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\\"usage\\\":{\\\"output_tokens\\\":99999}\"}}\r\n\r\n" +
				"event: message_delta\r\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":42}}\r\n\r\n" +
				"event: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n",
			meter.Outcome{Usage: meter.Usage{Input: 7, Output: 42, CacheRead: 3}, Model: "claude-haiku-4-5", Known: true, Exact: true}},
		{"messages that break off", meter.Messages, events,
			"data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-haiku-4-5\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n" +
				"data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
			meter.Outcome{Usage: meter.Usage{Input: 7, Output: 1}, Model: "claude-haiku-4-5", Known: true}},
		{"chat", meter.Chat, plain,
			`{"id":"c","model":"gpt-4o-2024-08-06","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":8}},"service_tier":"default"}`,
			meter.Outcome{Usage: meter.Usage{Input: 40, Output: 20, CacheRead: 60}, Model: "gpt-4o-2024-08-06", Tier: "default", Known: true, Exact: true}},
		{"chat as a stream", meter.Chat, events,
			"data: {\"model\":\"gpt-4o\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n" +
				"data: {\"model\":\"gpt-4o\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
			meter.Outcome{Usage: meter.Usage{Input: 9, Output: 2}, Model: "gpt-4o", Known: true, Exact: true}},
		{"chat that says what it has cost", meter.Chat, events,
			"data: {\"model\":\"acme/unknown\",\"choices\":[],\"cost\":5,\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"cost\":0.0001234}}\n\ndata: [DONE]\n\n",
			meter.Outcome{Usage: meter.Usage{Input: 9, Output: 2}, Model: "acme/unknown", Claimed: 123400, Known: true, Exact: true}},
		{"responses that say what they have cost", meter.Responses, plain,
			`{"object":"response","status":"completed","model":"grok-9","output":[{"usage":{"cost":9}}],"usage":{"input_tokens":5,"output_tokens":6,"cost_in_usd_ticks":37756000,"cost":-1}}`,
			meter.Outcome{Usage: meter.Usage{Input: 5, Output: 6}, Model: "grok-9", Claimed: 3775600, Known: true, Exact: true}},
		{"chat as a stream that tells no usage", meter.Chat, events,
			"data: {\"model\":\"gpt-4o\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n",
			meter.Outcome{Model: "gpt-4o"}},
		{"responses", meter.Responses, plain,
			`{"object":"response","status":"completed","model":"gpt-5-codex","output":[],"usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":10},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":4}}}`,
			meter.Outcome{Usage: meter.Usage{Input: 40, Output: 6, CacheRead: 10}, Model: "gpt-5-codex", Known: true, Exact: true}},
		{"responses that are answered later", meter.Responses, plain,
			`{"object":"response","status":"queued","model":"gpt-5","output":[],"usage":null}`,
			meter.Outcome{Model: "gpt-5"}},
		{"responses as a stream", meter.Responses, events,
			"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"gpt-5-codex\",\"usage\":null}}\n\n" +
				"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n" +
				"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-5-codex\",\"service_tier\":\"priority\",\"usage\":{\"input_tokens\":50,\"input_tokens_details\":{\"cached_tokens\":10},\"output_tokens\":6}}}\n\n",
			meter.Outcome{Usage: meter.Usage{Input: 40, Output: 6, CacheRead: 10}, Model: "gpt-5-codex", Tier: "priority", Known: true, Exact: true}},
		{"gemini", meter.Gemini, plain,
			`{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":3,"thoughtsTokenCount":4,"cachedContentTokenCount":5,"toolUsePromptTokenCount":6,"totalTokenCount":33},"modelVersion":"gemini-2.5-pro"}`,
			meter.Outcome{Usage: meter.Usage{Input: 21, Output: 7, CacheRead: 5}, Model: "gemini-2.5-pro", Known: true, Exact: true}},
		{"gemini as a stream", meter.Gemini, events,
			"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"h\"}]}}],\"usageMetadata\":{\"promptTokenCount\":20},\"modelVersion\":\"gemini-2.5-pro\"}\r\n\r\n" +
				"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"i\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":20,\"candidatesTokenCount\":3}}\r\n\r\n",
			meter.Outcome{Usage: meter.Usage{Input: 20, Output: 3}, Model: "gemini-2.5-pro", Known: true, Exact: true}},
		{"gemini as a list", meter.Gemini, plain,
			`[{"candidates":[],"usageMetadata":{"promptTokenCount":20}},{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":3},"modelVersion":"gemini-2.5-flash"}]`,
			meter.Outcome{Usage: meter.Usage{Input: 20, Output: 3}, Model: "gemini-2.5-flash", Known: true, Exact: true}},
		{"gemini of a subscription", meter.Gemini, events,
			"data: {\"response\":{\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":20,\"candidatesTokenCount\":3},\"modelVersion\":\"gemini-2.5-flash\"}}\n\n",
			meter.Outcome{Usage: meter.Usage{Input: 20, Output: 3}, Model: "gemini-2.5-flash", Known: true, Exact: true}},
		{"numbers that none may have", meter.Chat, plain,
			`{"model":"x","usage":{"prompt_tokens":-5,"completion_tokens":1e400,"prompt_tokens_details":{"cached_tokens":99999999999999999999}}}`,
			meter.Outcome{Usage: meter.Usage{Output: 1e9}, Model: "x", Known: true, Exact: true}},
		{"figures that are taken back", meter.Messages, events,
			"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1000,\"output_tokens\":1}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":0,\"output_tokens\":50}}\n\n" +
				"data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":-7}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
			meter.Outcome{Usage: meter.Usage{Input: 1000, Output: 50}, Known: true, Exact: true}},
		{"no JSON", meter.Chat, plain, `<html>usage: 5</html>`, meter.Outcome{}},
		{"half of it", meter.Chat, plain, `{"model":"x","usage":{"prompt_tokens":5,"completion_tokens":6}`, meter.Outcome{Usage: meter.Usage{Input: 5, Output: 6}, Model: "x", Known: true}},
	}
}

func read(s sample, sizes ...int) meter.Outcome {
	a := meter.NewAnswer(s.wire, s.kind)
	rest := []byte(s.text)
	for i := 0; len(rest) > 0; i++ {
		n := len(rest)
		if len(sizes) > 0 {
			n = min(n, 1+sizes[i%len(sizes)])
		}
		_, _ = a.Write(rest[:n])
		rest = rest[n:]
	}
	out := a.Outcome(true)
	out.Bytes = 0
	return out
}

func TestAnswersSayWhatTheyCost(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			for _, sizes := range [][]int{nil, {0}, {2, 0, 6}} {
				if diff := cmp.Diff(s.want, read(s, sizes...)); diff != "" {
					t.Errorf("in pieces of %v (-want +got):\n%s", sizes, diff)
				}
			}
		})
	}
}

// A stream that the client stops reading is not whole, unless its last event has
// come.
func TestAnswersThatAreCutOffAreNotExact(t *testing.T) {
	for _, s := range samples() {
		if !s.want.Exact {
			continue
		}
		a := meter.NewAnswer(s.wire, s.kind)
		_, _ = a.Write([]byte(s.text[:strings.LastIndex(s.text, "{\"")]))
		if out := a.Outcome(false); out.Exact && s.kind == plain {
			t.Errorf("%s: half of it counts as exact: %+v", s.name, out)
		}
	}
}

// FuzzAnswer shows that pieces change nothing, and that no answer makes a number
// that is negative or beyond the bound.
func FuzzAnswer(f *testing.F) {
	for _, s := range samples() {
		f.Add(string(s.wire), s.kind == events, s.text, 3, 1)
	}
	f.Fuzz(func(t *testing.T, wire string, stream bool, text string, one, two int) {
		s := sample{wire: meter.Wire(wire), kind: plain, text: text}
		if stream {
			s.kind = events
		}
		whole := read(s)
		if diff := cmp.Diff(whole, read(s, one&63, two&7)); diff != "" {
			t.Fatalf("in pieces it says something else (-whole +pieces):\n%s", diff)
		}
		u := whole.Usage
		for _, n := range []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CacheWriteHour, u.Searches, int64(meter.Price{Input: 1e15, Output: 1e15}.Cost(u))} {
			if n < 0 {
				t.Fatalf("a count is below zero: %+v", u)
			}
		}
		if u.Input > 2e9 || u.Output > 2e9 || u.CacheRead > 1e9 || u.CacheWrite > 1e9 {
			t.Fatalf("a count is beyond the bound: %+v", u)
		}
	})
}
