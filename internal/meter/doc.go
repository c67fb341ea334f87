// Package meter knows what calls of language models cost: which requests are
// such calls ([RouteOf]), the most that one can cost ([ReadCall], [Price.Most]),
// and what one did cost, read from the answer while it passes ([Answer]), for
// the wire formats of Anthropic messages, OpenAI chat completions and
// responses, and Gemini.
//
// It is pure: it opens nothing, sends nothing and keeps nothing. Its input comes
// from a sandbox or from a host, so every reader has bounded memory, takes its
// bytes in any pieces, and never gives a negative or an overflowing number.
//
// Start reading at [RouteOf], then [Answer].
package meter
