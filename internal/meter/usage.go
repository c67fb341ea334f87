package meter

import "math"

// maxTokens bounds every count: larger claims are cut to it. No call of any model
// comes near a billion tokens.
const maxTokens = 1e9

// Usage counts tokens. The counts do not overlap: a token that was read from a
// cache is not in Input.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"` // thinking included
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	// CacheWriteHour is the part of CacheWrite that stays for an hour, which
	// costs more.
	CacheWriteHour int64 `json:"cache_write_hour,omitempty"`
	Searches       int64 `json:"searches,omitempty"` // of the web, by the provider, which are charged one by one
}

// Tokens is the sum of all.
func (u Usage) Tokens() int64 {
	return Sum(u.Input, u.Output, u.CacheRead, u.CacheWrite)
}

// Prompt is the number of tokens that the model read.
func (u Usage) Prompt() int64 { return Sum(u.Input, u.CacheRead, u.CacheWrite) }

// Add is the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: Sum(u.Input, v.Input), Output: Sum(u.Output, v.Output),
		CacheRead: Sum(u.CacheRead, v.CacheRead), CacheWrite: Sum(u.CacheWrite, v.CacheWrite),
		CacheWriteHour: Sum(u.CacheWriteHour, v.CacheWriteHour), Searches: Sum(u.Searches, v.Searches),
	}
}

// Sum adds numbers, counting negative ones as zero. It stays at the largest
// number instead of overflowing.
func Sum(numbers ...int64) int64 {
	var total int64
	for _, n := range numbers {
		n = max(n, 0)
		if total > math.MaxInt64-n {
			return math.MaxInt64
		}
		total += n
	}
	return total
}

// product multiplies non-negative numbers, likewise.
func product(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
