package sandbox_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func TestBudgetAsText(t *testing.T) {
	for text, want := range map[string]sandbox.Budget{
		"5 USD": {USD: 5e9}, "$0.25": {USD: 25e7}, "1_000usd": {USD: 1e12},
		"200k tokens": {Tokens: 200_000}, "1.5M tokens": {Tokens: 1_500_000}, "12345 tokens": {Tokens: 12345},
		"5 USD, 2M tokens": {USD: 5e9, Tokens: 2e6}, "none": {USD: -1, Tokens: -1},
	} {
		got, err := sandbox.ParseBudget(text)
		if err != nil || got != want {
			t.Errorf("%q is %+v (%v), want %+v", text, got, err, want)
		}
		if again, err := sandbox.ParseBudget(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, which is %+v (%v)", text, got, again, err)
		}
	}
	for _, text := range []string{"", "5", "5 EUR", "0 USD", "-1 USD", "NaN USD", "Inf tokens", "5 USD, 6 USD", "tokens", "$5 USD", "1e30 USD", "0.1 tokens", "5 USD,"} {
		if got, err := sandbox.ParseBudget(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestTheStricterBudgetCounts(t *testing.T) {
	mine := sandbox.Budget{USD: 5e9}
	for _, c := range []struct{ other, want sandbox.Budget }{
		{sandbox.Budget{USD: 9e9}, mine},
		{sandbox.Budget{USD: 1e9}, sandbox.Budget{USD: 1e9}},
		{sandbox.Budget{Tokens: 7}, sandbox.Budget{USD: 5e9, Tokens: 7}},
		{sandbox.Budget{USD: -1, Tokens: -1}, sandbox.Budget{USD: 5e9, Tokens: -1}},
		{sandbox.Budget{}, mine},
	} {
		if got := mine.Least(c.other); got != c.want {
			t.Errorf("of %+v and %+v the stricter is %+v, want %+v", mine, c.other, got, c.want)
		}
	}
}
