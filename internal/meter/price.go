package meter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Money is an amount in billionths of a dollar (USD).
type Money int64

// Dollar is one dollar.
const Dollar Money = 1e9

// String shows an amount as people read it: cents where it is more than one,
// and four digits below.
func (m Money) String() string {
	dollars := float64(m) / float64(Dollar)
	switch {
	case m == 0 || m >= Dollar/100:
		return fmt.Sprintf("$%.2f", dollars)
	case m < Dollar/10000:
		return "<$0.0001"
	}
	return fmt.Sprintf("$%.4f", dollars)
}

// Rate is a price per million tokens in billionths of a dollar, so per token in
// quadrillionths.
type Rate int64

// rate is a price in dollars per million tokens.
func rate(dollars float64) Rate { return Rate(math.Round(dollars * float64(Dollar))) }

// Price is the price of a model.
type Price struct {
	Input, Output Rate
	CacheRead     Rate
	CacheWrite    Rate
	CacheHour     Rate // of writes that are kept for an hour
	// Above LongFrom tokens of a prompt, if it is not 0, these count for all of
	// the call.
	LongFrom                      int64
	LongInput, LongOutput         Rate
	LongCacheRead, LongCacheWrite Rate
	// Context is the most that the model reads, and MaxOutput the most that it
	// writes.
	Context, MaxOutput int64
}

// perSearch is the cost of a web search by the provider, at the dearest (Gemini's
// grounding: 35 dollars for a thousand; Anthropic and OpenAI: 10).
const perSearch = 35 * Dollar / 1000

// Cost is the cost of usage.
func (p Price) Cost(u Usage) Money {
	if p.LongFrom > 0 && u.Prompt() > p.LongFrom {
		p = p.long()
	}
	hour := min(u.CacheWriteHour, u.CacheWrite)
	return Money(Sum(
		part(u.Input, p.Input), part(u.Output, p.Output), part(u.CacheRead, p.CacheRead),
		part(u.CacheWrite-hour, p.CacheWrite), part(hour, p.CacheHour),
		product(u.Searches, int64(perSearch)),
	))
}

func (p Price) long() Price {
	p.Input, p.Output, p.CacheRead = p.LongInput, p.LongOutput, p.LongCacheRead
	p.CacheWrite, p.CacheHour = p.LongCacheWrite, max(p.LongCacheWrite, 2*p.LongInput)
	return p
}

// part is the price of that many tokens, rounded up.
func part(tokens int64, r Rate) int64 {
	tokens = min(max(tokens, 0), maxTokens)
	whole, rest := int64(r)/1e6, int64(r)%1e6
	cost := product(tokens, whole)
	if fine := product(tokens, rest); fine > 0 {
		cost = Sum(cost, (fine+1e6-1)/1e6)
	}
	return cost
}

// The most that an unknown model reads and writes.
const (
	anyContext = 2_000_000
	anyOutput  = 128_000
)

// Tokens that a request costs besides its bytes: the provider's text before
// tools, and an image.
const (
	beside   = 2_000
	perImage = 8_192
)

// Most is the most that a call uses and costs. With a zero Price, which is
// unknown, only the usage counts.
func (p Price) Most(c Call) (Usage, Money) {
	window, output := p.Context, p.MaxOutput
	if window == 0 {
		window = anyContext
	}
	if output == 0 {
		output = anyOutput
	}
	// No text has more tokens than bytes, and no model reads more than fits.
	input := min(Sum(c.Bytes, beside, product(c.Images, perImage)), window)
	if c.Outside {
		input = window
	}
	if c.Output > 0 {
		output = c.Output
	}
	u := Usage{Input: input, Output: min(product(output, max(c.Copies, 1)), maxTokens)}
	if c.Caches {
		// Writing to the cache is the dearest way to read.
		u.Input, u.CacheWrite = 0, input
		if c.CacheHour {
			u.CacheWriteHour = input
		}
	}
	return u, p.Cost(u)
}

// Prices finds the price of a model.
type Prices struct{ Own map[string]Price }

// Of finds the price of a model; own prices win over the program's. Names differ
// in their surroundings: a publisher before, a date or "-latest" after.
func (p Prices) Of(model string) (Price, bool) {
	known := table()
	for _, name := range spellings(model) {
		if price, ok := p.Own[name]; ok {
			return price, true
		}
		if price, ok := known[name]; ok {
			return price, true
		}
	}
	return Price{}, false
}

func spellings(model string) []string {
	model = strings.ToLower(model)
	names := []string{model}
	add := func(name string) {
		if name != "" && name != names[len(names)-1] {
			names = append(names, name)
		}
	}
	add(model[strings.LastIndexByte(model, '/')+1:])
	name, _, _ := strings.Cut(names[len(names)-1], "@") // Vertex AI: a date
	add(name)
	add(strings.TrimSuffix(name, "-latest"))
	add(undated(name))
	add(strings.ReplaceAll(undated(name), ".", "-")) // as gateways write Anthropic's: claude-sonnet-4.6
	return names
}

// undated removes a date from the end: -20250929 or -2025-09-29.
func undated(name string) string {
	for _, length := range []int{len("-20250929"), len("-2025-09-29")} {
		if len(name) <= length {
			continue
		}
		tail := name[len(name)-length:]
		if digits := strings.ReplaceAll(tail, "-", ""); tail[0] == '-' && len(digits) == 8 && strings.HasPrefix(digits, "20") {
			if _, err := strconv.Atoi(digits); err == nil {
				return name[:len(name)-length]
			}
		}
	}
	return name
}

// Priced reports whether the table holds for the tier of service that a request
// or an answer names.
func Priced(tier string) bool { return ordinary(tier) }
