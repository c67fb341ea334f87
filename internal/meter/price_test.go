package meter_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/meter"
)

func TestPrices(t *testing.T) {
	prices := meter.Prices{Own: map[string]meter.Price{"gpt-5": {Input: 1e9, Output: 2e9}}}
	for _, c := range []struct {
		model string
		usage meter.Usage
		want  meter.Money
	}{
		// 3 and 15 dollars per million, a tenth, 1.25 and 2 times for the cache.
		{"claude-sonnet-4-6", meter.Usage{Input: 1000, Output: 100, CacheRead: 10_000, CacheWrite: 2000, CacheWriteHour: 500}, 3_000_000 + 1_500_000 + 3_000_000 + 5_625_000 + 3_000_000},
		{"claude-sonnet-4-5-20250929", meter.Usage{Input: 1000}, 3_000_000},
		{"claude-sonnet-4-5-20250929", meter.Usage{Input: 1000, CacheRead: 200_000}, 6_000_000 + 120_000_000},
		{"anthropic/claude-3-5-haiku-latest", meter.Usage{Input: 1000}, 800_000},
		{"claude-sonnet-4@20250514", meter.Usage{Output: 1000}, 15_000_000},
		{"gpt-4o-2024-05-13", meter.Usage{Input: 1000}, 5_000_000}, // a date with a price of its own
		{"gpt-4o-2024-11-20", meter.Usage{Input: 1000}, 2_500_000},
		{"gpt-5", meter.Usage{Input: 1000, Output: 1000}, 3_000_000},
		{"gpt-5-nano", meter.Usage{CacheRead: 1}, 5}, // 5 nanodollars
		{"anthropic/claude-sonnet-4.6", meter.Usage{Input: 1000}, 3_000_000},
		{"grok-4.5", meter.Usage{Input: 1000, Output: 100, CacheRead: 1000}, 2_000_000 + 600_000 + 300_000},
	} {
		price, ok := prices.Of(c.model)
		if got := price.Cost(c.usage); !ok || got != c.want {
			t.Errorf("%s with %+v costs %d nanodollars (known: %t), want %d", c.model, c.usage, got, ok, c.want)
		}
	}
	for _, unknown := range []string{"", "gpt-5-secret", "claude", "-20250101", "x/", "@"} {
		if _, ok := prices.Of(unknown); ok {
			t.Errorf("%q has a price", unknown)
		}
	}
}

// A reservation is never less than the cost of a call of that size.
func TestMostIsTheMost(t *testing.T) {
	price, _ := meter.Prices{}.Of("claude-sonnet-4-5")
	for _, c := range []meter.Call{
		{Bytes: 5000, Output: 100, Copies: 1},
		{Bytes: 5000, Output: 100, Copies: 1, Caches: true, CacheHour: true},
		{Bytes: 900_000, Output: 100, Copies: 2, Caches: true},
		{Bytes: 10, Copies: 1, Outside: true},
	} {
		u, most := price.Most(c)
		output := c.Output * c.Copies
		if output == 0 {
			output = 64_000
		}
		read := min(c.Bytes, 1_000_000)
		for _, real := range []meter.Usage{
			{Input: read, Output: output}, {CacheRead: read, Output: output},
		} {
			if cost := price.Cost(real); cost > most || real.Tokens() > u.Tokens() {
				t.Errorf("%+v: %+v costs %v, more than the %v that are reserved", c, real, cost, most)
			}
		}
		if c.Caches {
			real := meter.Usage{CacheWrite: read, Output: output}
			if c.CacheHour {
				real.CacheWriteHour = read
			}
			if cost := price.Cost(real); cost > most {
				t.Errorf("%+v: %+v costs %v, more than the %v that are reserved", c, real, cost, most)
			}
		}
	}
}

func TestMoneyAsText(t *testing.T) {
	for m, want := range map[meter.Money]string{0: "$0.00", 1: "<$0.0001", 120_000: "$0.0001", 1_234_000: "$0.0012", 12_345_678: "$0.01", 5 * meter.Dollar: "$5.00"} {
		if got := m.String(); got != want {
			t.Errorf("%d nanodollars are %q, want %q", m, got, want)
		}
	}
}
