package meter_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/meter"
)

func TestRequestsSayWhatTheyMayCost(t *testing.T) {
	messages, chat := meter.Route{Class: meter.Model, Wire: meter.Messages}, meter.Route{Class: meter.Model, Wire: meter.Chat}
	responses, gemini := meter.Route{Class: meter.Model, Wire: meter.Responses}, meter.Route{Class: meter.Model, Wire: meter.Gemini, Model: "gemini-2.5-pro"}
	for _, c := range []struct {
		route meter.Route
		text  string
		want  meter.Call // without Bytes
		why   string
	}{
		{messages, `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],
			"tools":[{"name":"WebFetch","input_schema":{"type":"object","properties":{"url":{"type":"string"},"prompt":{"type":"string"}}}}],
			"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"x","input":{"source":{"url":"x"},"file_id":"y"}}]}]}`,
			meter.Call{Model: "claude-sonnet-4-5", Output: 100, Copies: 1, Stream: true, Caches: true, CacheHour: true}, ""},
		{messages, `{"model":"m","max_tokens":1,"messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aaaa"}}]}]}`,
			meter.Call{Model: "m", Output: 1, Copies: 1, Images: 1}, ""},
		{messages, `{"model":"m","max_tokens":1,"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}`,
			meter.Call{Model: "m", Output: 1, Copies: 1, Outside: true}, ""},
		{messages, `{"model":"m","max_tokens":1,"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[]}`,
			meter.Call{Model: "m", Output: 1, Copies: 1, Outside: true}, ""},
		{messages, `{"model":"m","max_tokens":1,"speed":"fast","messages":[]}`, meter.Call{Model: "m", Output: 1, Copies: 1, Tier: "fast"}, ""},
		{chat, `{"model":"gpt-4o","n":3,"max_tokens":5,"max_completion_tokens":50,"messages":[]}`, meter.Call{Model: "gpt-4o", Output: 50, Copies: 3}, ""},
		{chat, `{"model":"gpt-4o","max_tokens":null,"tools":[{"type":"function","function":{"parameters":{"properties":{"file_id":{}}}}}],"messages":[]}`, meter.Call{Model: "gpt-4o", Copies: 1}, ""},
		{chat, `{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aa"}}]}]}`, meter.Call{Model: "gpt-4o", Copies: 1, Images: 1}, ""},
		{responses, `{"model":"gpt-5-codex","previous_response_id":null,"prompt":null,"input":[{"type":"message","content":[{"type":"input_text","text":"previous_response_id"}]}],"stream":true,"service_tier":"priority"}`,
			meter.Call{Model: "gpt-5-codex", Copies: 1, Stream: true, Tier: "priority"}, ""},
		{responses, `{"model":"gpt-5","previous_response_id":"r","background":true,"input":"x"}`, meter.Call{Model: "gpt-5", Copies: 1, Outside: true, Later: true}, ""},
		{gemini, `{"contents":[{"parts":[{"functionResponse":{"response":{"fileUri":"x"}}}]}],"generationConfig":{"maxOutputTokens":7,"candidate_count":2}}`,
			meter.Call{Model: "gemini-2.5-pro", Output: 7, Copies: 2}, ""},
		{gemini, `{"contents":[],"tools":[{"googleSearch":{}}]}`, meter.Call{Model: "gemini-2.5-pro", Copies: 1, Outside: true}, ""},
		{meter.Route{Wire: meter.Gemini}, `{"model":"gemini-2.5-flash","request":{"contents":[{"parts":[{"fileData":{"fileUri":"x"}}]}],"generationConfig":{"maxOutputTokens":7}}}`,
			meter.Call{Model: "gemini-2.5-flash", Output: 7, Copies: 1, Outside: true}, ""},

		// A request that servers may read in two ways is not guessed.
		{messages, `{"model":"claude-opus-4-1","model":"claude-haiku-4-5","max_tokens":1}`, meter.Call{}, `has "model" twice`},
		{messages, `{"model":"m","max_tokens":1,"max_tok\u0065ns":100000}`, meter.Call{}, `has "max_tokens" twice`},
		{gemini, `{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":9}}`, meter.Call{}, `twice`},
		{messages, `{"model":"m","max_tokens":-1}`, meter.Call{}, `value for "max_tokens"`},
		{messages, `{"model":"m","max_tokens":"9"}`, meter.Call{}, `value for "max_tokens"`},
		{messages, `{"max_tokens":1}`, meter.Call{}, "names no model"},
		{messages, `{"model":"m"} {"model":"x"}`, meter.Call{}, "is not JSON"},
		{messages, `{"model":"m",}`, meter.Call{}, "is not JSON"},
		{messages, strings.Repeat("[", 100000), meter.Call{}, "is not JSON"},
		{messages, ``, meter.Call{}, "is not JSON"},
	} {
		got, err := meter.ReadCall(c.route, strings.NewReader(c.text))
		if c.why != "" {
			var unclear *meter.Unclear
			if !errors.As(err, &unclear) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: the error is %v, want %q", c.text[:min(len(c.text), 80)], err, c.why)
			}
			continue
		}
		got.Bytes = 0
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.text, err, diff)
		}
	}
}

// FuzzCall compares with encoding/json: text that it does not take for JSON is
// refused, and the model is the one that it reads.
func FuzzCall(f *testing.F) {
	f.Add(`{"model":"m","max_tokens":5,"messages":[{"content":"\ud83d\ude00 \ud800"}]}`)
	f.Add(`{"mod\u0065l":"m","n":1.5e1}`)
	f.Add(`{"a":[[[[[[[[[[[1]]]]]]]]]]],"model":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		call, err := meter.ReadCall(meter.Route{Class: meter.Model, Wire: meter.Chat}, strings.NewReader(text))
		if call.Output < 0 || call.Copies < 1 || call.Bytes != int64(len(text)) {
			t.Fatalf("%+v", call)
		}
		if err != nil {
			return
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &fields) != nil {
			t.Fatalf("%q is taken for JSON", text)
		}
		var model string
		if err := json.Unmarshal(fields["model"], &model); err != nil || call.Model != model {
			t.Fatalf("the model is %q, encoding/json reads %q (%v)", call.Model, model, err)
		}
	})
}

func TestRoutes(t *testing.T) {
	for _, c := range []struct {
		host, method, path string
		want               meter.Route
	}{
		{"api.anthropic.com", "POST", "/v1/messages", meter.Route{Class: meter.Model, Wire: meter.Messages}},
		{"api.anthropic.com", "POST", "/v1/messages/count_tokens", meter.Route{Class: meter.Free}},
		{"api.anthropic.com", "POST", "/v1/messages/batches", meter.Route{Class: meter.Opaque}},
		{"api.anthropic.com", "GET", "/v1/messages/batches/x/results", meter.Route{Class: meter.Free}},
		{"api.anthropic.com", "POST", "/v1/files", meter.Route{Class: meter.Opaque}},
		{"api.anthropic.com", "POST", "/v1/complete", meter.Route{}},
		{"api.anthropic.com", "POST", "/api/event_logging/batch", meter.Route{Class: meter.Free}},
		{"api.anthropic.com", "GET", "/v1/models", meter.Route{Class: meter.Free}},
		{"api.openai.com", "POST", "/v1/chat/completions", meter.Route{Class: meter.Model, Wire: meter.Chat}},
		{"openrouter.ai", "POST", "/api/v1/chat/completions", meter.Route{Class: meter.Model, Wire: meter.Chat}},
		{"api.openai.com", "POST", "/v1/responses", meter.Route{Class: meter.Model, Wire: meter.Responses}},
		{"chatgpt.com", "POST", "/backend-api/codex/responses", meter.Route{Class: meter.Model, Wire: meter.Responses}},
		{"api.openai.com", "GET", "/v1/responses/r", meter.Route{Class: meter.Free}},
		{"api.openai.com", "POST", "/v1/embeddings", meter.Route{}},
		{"api.openai.com", "POST", "/v1/batches", meter.Route{Class: meter.Opaque}},
		{"generativelanguage.googleapis.com", "POST", "/v1beta/models/gemini-2.5-pro:generateContent", meter.Route{Class: meter.Model, Wire: meter.Gemini, Model: "gemini-2.5-pro"}},
		{"generativelanguage.googleapis.com", "POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent", meter.Route{Class: meter.Model, Wire: meter.Gemini, Model: "gemini-2.5-pro"}},
		{"generativelanguage.googleapis.com", "POST", "/v1beta/models/gemini-2.5-pro:batchGenerateContent", meter.Route{Class: meter.Opaque}},
		{"generativelanguage.googleapis.com", "POST", "/v1beta/models/gemini-2.5-pro:countTokens", meter.Route{Class: meter.Free}},
		{"generativelanguage.googleapis.com", "POST", "/v1beta/models/gemini-2.5-pro:predict", meter.Route{}},
		{"cloudcode-pa.googleapis.com", "POST", "/v1internal:streamGenerateContent", meter.Route{Class: meter.Model, Wire: meter.Gemini}},
		{"cloudcode-pa.googleapis.com", "POST", "/v1internal:loadCodeAssist", meter.Route{Class: meter.Free}},
		{"api.anthropic.com", "POST", "", meter.Route{}},
		{"api.githubcopilot.com", "POST", "/chat/completions", meter.Route{Class: meter.Model, Wire: meter.Chat}},
		{"api.githubcopilot.com", "POST", "/v1/messages", meter.Route{Class: meter.Model, Wire: meter.Messages}},
		{"api.z.ai", "POST", "/api/coding/paas/v4/chat/completions", meter.Route{Class: meter.Model, Wire: meter.Chat}},
	} {
		if got := meter.RouteOf(c.host, c.method, c.path); got != c.want {
			t.Errorf("%s %s%s is %+v, want %+v", c.method, c.host, c.path, got, c.want)
		}
	}
}
