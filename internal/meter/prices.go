package meter

import "slices"

// list is one line of the table: dollars per million tokens.
type list struct {
	model                    string
	input, output, cacheRead float64
	context, maxOutput       int64
	longFrom                 int64   // above this many tokens of a prompt …
	longInput, longOutput    float64 // … these count
}

// table is what models cost, in dollars per million tokens, at the standard
// tier. The figures are those of the providers' price lists:
//
//	https://platform.claude.com/docs/en/about-claude/pricing
//	https://developers.openai.com/api/docs/pricing
//	https://ai.google.dev/gemini-api/docs/pricing
//
// as https://models.dev had collected them on 2026-07-01. Anthropic charges 1.25
// times the input for writes to its cache, and twice the input where it stays for
// an hour; the others charge nothing for writing. Users who pay other prices say
// so in cost.prices of their own configuration.
//
// To bring a price up to date: the line here, the date above, and `make docs`.
func table() map[string]Price {
	prices := map[string]Price{}
	for _, l := range anthropicPrices() {
		prices[l.model] = l.price(1.25, 2)
	}
	for _, l := range slices.Concat(openAIPrices(), geminiPrices(), otherPrices()) {
		prices[l.model] = l.price(1, 1)
	}
	return prices
}

func (l list) price(write, hour float64) Price {
	p := Price{
		Input: rate(l.input), Output: rate(l.output), CacheRead: rate(l.cacheRead),
		CacheWrite: rate(l.input * write), CacheHour: rate(l.input * hour),
		Context: l.context, MaxOutput: l.maxOutput,
	}
	if l.cacheRead == 0 { // nothing is cheaper for being cached
		p.CacheRead = p.Input
	}
	if l.longFrom > 0 {
		p.LongFrom, p.LongInput, p.LongOutput = l.longFrom, rate(l.longInput), rate(l.longOutput)
		p.LongCacheRead = Rate(float64(p.CacheRead) * l.longInput / l.input)
		p.LongCacheWrite = rate(l.longInput * write)
	}
	return p
}

// model, input, output, cache read, context, most output, long from, long input, long output
func anthropicPrices() []list {
	return []list{
		{"claude-fable-5", 10, 50, 1, 1_000_000, 128_000, 0, 0, 0},
		{"claude-opus-4-8", 5, 25, .50, 1_000_000, 128_000, 0, 0, 0},
		{"claude-opus-4-7", 5, 25, .50, 1_000_000, 128_000, 0, 0, 0},
		{"claude-opus-4-6", 5, 25, .50, 1_000_000, 128_000, 0, 0, 0},
		{"claude-opus-4-5", 5, 25, .50, 200_000, 64_000, 0, 0, 0},
		{"claude-opus-4-1", 15, 75, 1.50, 200_000, 32_000, 0, 0, 0},
		{"claude-opus-4-0", 15, 75, 1.50, 200_000, 32_000, 0, 0, 0},
		{"claude-opus-4", 15, 75, 1.50, 200_000, 32_000, 0, 0, 0},
		{"claude-sonnet-5", 2, 10, .20, 1_000_000, 128_000, 0, 0, 0},
		{"claude-sonnet-4-6", 3, 15, .30, 1_000_000, 64_000, 0, 0, 0},
		// With the beta of a long context they read up to a million.
		{"claude-sonnet-4-5", 3, 15, .30, 1_000_000, 64_000, 200_000, 6, 22.50},
		{"claude-sonnet-4-0", 3, 15, .30, 1_000_000, 64_000, 200_000, 6, 22.50},
		{"claude-sonnet-4", 3, 15, .30, 1_000_000, 64_000, 200_000, 6, 22.50},
		{"claude-haiku-4-5", 1, 5, .10, 200_000, 64_000, 0, 0, 0},
		{"claude-3-7-sonnet", 3, 15, .30, 200_000, 64_000, 0, 0, 0},
		{"claude-3-5-sonnet", 3, 15, .30, 200_000, 8_192, 0, 0, 0},
		{"claude-3-5-haiku", .80, 4, .08, 200_000, 8_192, 0, 0, 0},
		{"claude-3-opus", 15, 75, 1.50, 200_000, 4_096, 0, 0, 0},
		{"claude-3-haiku", .25, 1.25, .03, 200_000, 4_096, 0, 0, 0},
	}
}

func openAIPrices() []list {
	return []list{
		{"gpt-5.5", 5, 30, .50, 1_050_000, 128_000, 272_000, 10, 45},
		{"gpt-5.5-pro", 30, 180, 0, 1_050_000, 128_000, 272_000, 60, 270},
		{"gpt-5.4", 2.50, 15, .25, 1_050_000, 128_000, 272_000, 5, 22.50},
		{"gpt-5.4-pro", 30, 180, 0, 1_050_000, 128_000, 272_000, 60, 270},
		{"gpt-5.4-mini", .75, 4.50, .075, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.4-nano", .20, 1.25, .02, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.3-codex", 1.75, 14, .175, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.3-codex-spark", 1.75, 14, .175, 128_000, 32_000, 0, 0, 0},
		{"gpt-5.3-chat-latest", 1.75, 14, .175, 128_000, 16_384, 0, 0, 0},
		{"gpt-5.2", 1.75, 14, .175, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.2-codex", 1.75, 14, .175, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.2-chat-latest", 1.75, 14, .175, 128_000, 16_384, 0, 0, 0},
		{"gpt-5.2-pro", 21, 168, 0, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.1", 1.25, 10, .125, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.1-codex", 1.25, 10, .125, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.1-codex-max", 1.25, 10, .125, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.1-codex-mini", .25, 2, .025, 400_000, 128_000, 0, 0, 0},
		{"gpt-5.1-chat-latest", 1.25, 10, .125, 128_000, 16_384, 0, 0, 0},
		{"gpt-5", 1.25, 10, .125, 400_000, 128_000, 0, 0, 0},
		{"gpt-5-codex", 1.25, 10, .125, 400_000, 128_000, 0, 0, 0},
		{"gpt-5-chat-latest", 1.25, 10, .125, 400_000, 128_000, 0, 0, 0},
		{"gpt-5-mini", .25, 2, .025, 400_000, 128_000, 0, 0, 0},
		{"gpt-5-nano", .05, .40, .005, 400_000, 128_000, 0, 0, 0},
		{"gpt-5-pro", 15, 120, 0, 400_000, 272_000, 0, 0, 0},
		{"gpt-4.1", 2, 8, .50, 1_047_576, 32_768, 0, 0, 0},
		{"gpt-4.1-mini", .40, 1.60, .10, 1_047_576, 32_768, 0, 0, 0},
		{"gpt-4.1-nano", .10, .40, .025, 1_047_576, 32_768, 0, 0, 0},
		{"gpt-4o", 2.50, 10, 1.25, 128_000, 16_384, 0, 0, 0},
		{"gpt-4o-2024-05-13", 5, 15, 0, 128_000, 4_096, 0, 0, 0},
		{"gpt-4o-mini", .15, .60, .075, 128_000, 16_384, 0, 0, 0},
		{"o4-mini", 1.10, 4.40, .275, 200_000, 100_000, 0, 0, 0},
		{"o3", 2, 8, .50, 200_000, 100_000, 0, 0, 0},
		{"o3-pro", 20, 80, 0, 200_000, 100_000, 0, 0, 0},
		{"o3-mini", 1.10, 4.40, .55, 200_000, 100_000, 0, 0, 0},
		{"o1", 15, 60, 7.50, 200_000, 100_000, 0, 0, 0},
		{"o1-pro", 150, 600, 0, 200_000, 100_000, 0, 0, 0},
	}
}

func geminiPrices() []list {
	return []list{
		{"gemini-3.5-flash", 1.50, 9, .15, 1_048_576, 65_536, 0, 0, 0},
		{"gemini-3.1-pro-preview", 2, 12, .20, 1_048_576, 65_536, 200_000, 4, 18},
		{"gemini-3.1-pro-preview-customtools", 2, 12, .20, 1_048_576, 65_536, 200_000, 4, 18},
		{"gemini-3.1-flash-lite", .25, 1.50, .025, 1_048_576, 65_536, 0, 0, 0},
		{"gemini-3.1-flash-lite-preview", .25, 1.50, .025, 1_048_576, 65_536, 0, 0, 0},
		{"gemini-3-pro-preview", 2, 12, .20, 1_048_576, 65_536, 200_000, 4, 18},
		{"gemini-3-flash-preview", .50, 3, .05, 1_048_576, 65_536, 0, 0, 0},
		{"gemini-2.5-pro", 1.25, 10, .125, 1_048_576, 65_536, 200_000, 2.50, 15},
		{"gemini-2.5-flash", .30, 2.50, .03, 1_048_576, 65_536, 0, 0, 0},
		{"gemini-2.5-flash-lite", .10, .40, .01, 1_048_576, 65_536, 0, 0, 0},
		{"gemini-2.0-flash", .10, .40, .025, 1_048_576, 8_192, 0, 0, 0},
		{"gemini-2.0-flash-lite", .075, .30, 0, 1_048_576, 8_192, 0, 0, 0},
	}
}
