package meter

import (
	"slices"
	"strings"
)

// Wire is the format of a call and its answer.
type Wire string

// The formats.
const (
	Messages  Wire = "messages"  // Anthropic
	Chat      Wire = "chat"      // OpenAI's older one, which many servers speak
	Responses Wire = "responses" // OpenAI
	Gemini    Wire = "gemini"
)

// Class says what kind of request something is.
type Class int

// The classes.
const (
	Other  Class = iota // unknown: it may cost something, without saying what
	Model               // a call of a model, whose answer says what it cost
	Free                // known to cost nothing: lists of models, counting tokens, logins
	Opaque              // it has a cost that no answer tells: batches, files
)

// Route is what the request line tells about a request.
type Route struct {
	Class Class
	Wire  Wire
	Model string // where the path names it
}

// Known lists the hosts whose model calls are known.
func Known() []string {
	return []string{
		"api.anthropic.com",
		"api.openai.com",
		"chatgpt.com", // Codex with a subscription: /backend-api/codex/responses
		"generativelanguage.googleapis.com",
		"cloudcode-pa.googleapis.com", // Gemini CLI with a subscription: /v1internal:generateContent
		// Providers that speak these formats, with keys and accounts that clients keep.
		"ai-gateway.vercel.sh", "api.cerebras.ai", "api.deepinfra.com", "api.deepseek.com", "api.fireworks.ai", "api.githubcopilot.com",
		"api.groq.com", "api.kimi.com", "api.minimax.io", "api.mistral.ai", "api.moonshot.ai", "api.poe.com", "api.together.xyz", "api.x.ai", "api.z.ai",
		"inference.do-ai.run", "integrate.api.nvidia.com", "opencode.ai", "openrouter.ai", "router.huggingface.co",
	}
}

// RouteOf classifies a request. The path is in its clean form, without a query;
// one that has no clean form is Other. Model calls are known by the end of their
// path, so that the same holds for servers that add a prefix.
func RouteOf(host, method, path string) Route {
	if path == "" {
		return Route{}
	}
	post := method == "POST"
	if strings.Contains(path, ":batch") || slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool {
		return slices.Contains([]string{"batches", "files", "fine_tuning", "uploads", "cachedContents", "vector_stores", "containers"}, part)
	}) {
		if method == "GET" || method == "HEAD" || method == "DELETE" {
			return Route{Class: Free}
		}
		return Route{Class: Opaque}
	}
	switch {
	case post && strings.HasSuffix(path, "/messages"):
		return Route{Class: Model, Wire: Messages}
	case post && strings.HasSuffix(path, "/chat/completions"):
		return Route{Class: Model, Wire: Chat}
	case strings.HasSuffix(path, "/responses") && (post || method == "GET"): // a GET is an upgrade to a websocket
		return Route{Class: Model, Wire: Responses}
	case post && strings.HasSuffix(path, "/responses/compact"): // Codex: answers as a response does
		return Route{Class: Model, Wire: Responses}
	case post && strings.HasSuffix(path, "/messages/count_tokens"), post && strings.HasSuffix(path, ":countTokens"),
		post && strings.HasSuffix(path, "/responses/input_tokens"):
		return Route{Class: Free}
	}
	if before, verb, ok := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":"); ok && post && (verb == "generateContent" || verb == "streamGenerateContent") {
		if strings.HasPrefix(before, "v1") {
			before = "" // Code Assist has no model in the path
		}
		return Route{Class: Model, Wire: Gemini, Model: before}
	}
	if method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "DELETE" {
		return Route{Class: Free}
	}
	for _, free := range free() {
		if host == free.host && strings.HasPrefix(path, free.path) {
			return Route{Class: Free}
		}
	}
	return Route{}
}

// prefix is a path of a host below which requests cost nothing.
type prefix struct{ host, path string }

// free lists the requests that clients of models send besides calls: logins,
// settings, telemetry.
func free() []prefix {
	return []prefix{
		{"api.anthropic.com", "/api/"},
		{"api.anthropic.com", "/v1/oauth/"},
		{"chatgpt.com", "/backend-api/codex/analytics"},
		{"chatgpt.com", "/backend-api/wham/"},
		{"cloudcode-pa.googleapis.com", "/v1internal:loadCodeAssist"},
		{"cloudcode-pa.googleapis.com", "/v1internal:onboardUser"},
		{"cloudcode-pa.googleapis.com", "/v1internal:recordCodeAssistMetrics"},
		{"cloudcode-pa.googleapis.com", "/v1internal:retrieveUserQuota"},
		{"cloudcode-pa.googleapis.com", "/v1internal:fetchAdminControls"},
		{"cloudcode-pa.googleapis.com", "/v1internal:listExperiments"},
	}
}
