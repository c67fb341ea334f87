package sandbox

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Budget bounds the cost of model calls: an amount of money, a number of tokens, or
// both. A value is zero where it is not set, and negative (NoLimit) where there is
// no bound.
type Budget struct {
	USD    int64 `json:"nano_usd,omitempty"` // billionths of a dollar
	Tokens int64 `json:"tokens,omitempty"`
}

// nano is a dollar in the unit of Budget.USD.
const nano = 1e9

// Bounds reports whether b bounds anything.
func (b Budget) Bounds() bool { return b.USD > 0 || b.Tokens > 0 }

// Said reports whether b sets anything at all.
func (b Budget) Said() bool { return b != Budget{} }

// Least is the stricter of both in each unit.
func (b Budget) Least(other Budget) Budget {
	return Budget{USD: stricter(b.USD, other.USD), Tokens: stricter(b.Tokens, other.Tokens)}
}

func stricter(a, b int64) int64 {
	switch {
	case a <= 0 && b <= 0:
		return min(a, b)
	case a <= 0:
		return b
	case b <= 0:
		return a
	}
	return min(a, b)
}

// wider reports whether b allows more than other in some unit.
func (b Budget) wider(other Budget) bool {
	beyond := func(mine, bound int64) bool { return bound > 0 && (mine <= 0 || mine > bound) }
	return beyond(b.USD, other.USD) || beyond(b.Tokens, other.Tokens)
}

// String writes b as people write it; empty when it sets nothing.
func (b Budget) String() string {
	if !b.Bounds() {
		if b.Said() {
			return None
		}
		return ""
	}
	var parts []string
	if b.USD > 0 {
		parts = append(parts, strings.TrimSuffix(strconv.FormatFloat(float64(b.USD)/nano, 'f', -1, 64), ".0")+" USD")
	}
	if b.Tokens > 0 {
		parts = append(parts, tokens(b.Tokens)+" tokens")
	}
	return strings.Join(parts, ", ")
}

func tokens(n int64) string {
	switch {
	case n%1e6 == 0:
		return strconv.FormatInt(n/1e6, 10) + "M"
	case n%1e3 == 0:
		return strconv.FormatInt(n/1e3, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

// ParseBudget reads "5 USD", "$5", "200k tokens", "5 USD, 2M tokens" or "none".
func ParseBudget(text string) (Budget, error) {
	if strings.TrimSpace(text) == None {
		return Budget{USD: NoLimit, Tokens: NoLimit}, nil
	}
	var b Budget
	for part := range strings.SplitSeq(text, ",") {
		part = strings.ToLower(strings.TrimSpace(part))
		amount, isTokens := strings.CutSuffix(part, "tokens")
		into, unit := &b.Tokens, 1.0
		if !isTokens {
			var before, after bool
			amount, after = strings.CutSuffix(part, "usd")
			amount, before = strings.CutPrefix(strings.TrimSpace(amount), "$")
			if before == after {
				return Budget{}, fmt.Errorf("it is neither an amount in USD nor a number of tokens")
			}
			into, unit = &b.USD, nano
		}
		amount = strings.ReplaceAll(strings.TrimSpace(amount), "_", "")
		if isTokens {
			if number, ok := strings.CutSuffix(amount, "k"); ok {
				amount, unit = number, 1e3
			} else if number, ok := strings.CutSuffix(amount, "m"); ok {
				amount, unit = number, 1e6
			}
		}
		n, err := strconv.ParseFloat(amount, 64)
		switch {
		case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
			return Budget{}, fmt.Errorf("it is neither an amount in USD nor a number of tokens")
		case *into != 0:
			return Budget{}, fmt.Errorf("it says the same twice")
		case n <= 0 || n*unit < 1:
			return Budget{}, fmt.Errorf("it is not more than nothing")
		case n*unit > 1e15:
			return Budget{}, fmt.Errorf("it is too much")
		}
		*into = int64(math.Round(n * unit))
	}
	return b, nil
}
