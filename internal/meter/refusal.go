package meter

import (
	"encoding/json"
	"fmt"
)

// Refusal is an answer in a provider's own format of errors, so that clients
// show its message, and do not try again.
type Refusal struct {
	Status      int
	ContentType string
	Body        []byte
}

// refusedCode is the code in answers to OpenAI's clients.
const refusedCode = "budget_exceeded"

// Refuse answers a request that is not sent. The wire is that of the route, or of
// the host where the route is not a model's.
func Refuse(wire Wire, why string) Refusal {
	// Clients do not repeat a 400; the providers themselves answer it where an
	// account has no credit.
	return Refusal{Status: 400, ContentType: "application/json", Body: append(encoded(failure(wire, why)), '\n')}
}

// Cut is the end of a stream of events that is cut off.
func Cut(wire Wire, why string) []byte {
	name, body := "", failure(wire, why)
	switch wire {
	case Messages:
		name = "event: error\n"
	case Responses:
		name = "event: response.failed\n"
		body = map[string]any{"type": "response.failed", "response": map[string]any{"object": "response", "status": "failed",
			"error": map[string]any{"code": refusedCode, "message": why}}}
	}
	// The text before may be the middle of an event.
	return fmt.Appendf(nil, "\n\n%sdata: %s\n\n", name, encoded(body))
}

func failure(wire Wire, why string) any {
	switch wire {
	case Messages:
		return map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": why}}
	case Gemini:
		return map[string]any{"error": map[string]any{"code": 400, "message": why, "status": "FAILED_PRECONDITION"}}
	}
	return map[string]any{"error": map[string]any{"message": why, "type": "invalid_request_error", "param": nil, "code": refusedCode}}
}

func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte("{}") // maps of strings and numbers
	}
	return data
}

// WireOf is the format in which a host words its errors.
func WireOf(host string) Wire {
	switch host {
	case "api.anthropic.com":
		return Messages
	case "generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com":
		return Gemini
	}
	return Chat
}
