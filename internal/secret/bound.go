package secret

import (
	"context"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

// linger is how long a value stays after its last use, so that a burst of
// requests asks its source once. A changed source counts after that.
const linger = 5 * time.Second

// fetchTime bounds how long a source may take. A keyring may ask a human.
const fetchTime = 60 * time.Second

// Bound is a secret of a set.
type Bound struct {
	Binding
	fetch    Fetch
	fresh    bool          // fetched for each use
	fetching chan struct{} // holds one while a caller fetches

	mu      sync.Mutex
	current *Held // may be used again; it has a reference of its own
	leaves  *time.Timer
}

func newBound(binding Binding, fetch Fetch) *Bound {
	return &Bound{Binding: binding, fetch: fetch, fetching: make(chan struct{}, 1)}
}

// Hold fetches the value, or gives the one that was fetched just now. It must
// be released.
func (b *Bound) Hold(ctx context.Context) (*Held, error) {
	select {
	case b.fetching <- struct{}{}:
		defer func() { <-b.fetching }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.mu.Lock()
	if held := b.current; held != nil {
		held.refs++
		b.mu.Unlock()
		return held, nil
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	raw, err := b.fetch(ctx)
	defer clear(raw)
	if err == nil {
		err = CheckValue(TrimValue(raw))
	}
	if err != nil {
		return nil, fault.Wrap("", err, "cannot read the secret %s", b.Name)
	}
	held := newHeld(b, TrimValue(raw))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fresh {
		held.refs = 1
		return held, nil
	}
	held.refs = 2 // the caller's and the cache's
	b.current = held
	b.leaves = time.AfterFunc(linger, func() { b.drop(held) })
	return held, nil
}

// Forget has the next use fetch the value again.
func (b *Bound) Forget() {
	b.mu.Lock()
	held := b.current
	b.mu.Unlock()
	if held != nil {
		b.drop(held)
	}
}

func (b *Bound) drop(held *Held) {
	b.mu.Lock()
	mine := b.current == held
	if mine {
		b.current = nil
		b.leaves.Stop()
	}
	b.mu.Unlock()
	if mine {
		held.Release()
	}
}

// Held is a value in use.
type Held struct {
	*Bound
	value  []byte
	memory memory
	in     *replace.Table
	even   *replace.Table
	refs   int // guarded by Bound.mu
}

// newHeld takes a copy of value.
func newHeld(b *Bound, value []byte) *Held {
	h := &Held{Bound: b}
	h.value = h.memory.alloc(len(value))
	copy(h.value, value)
	mark := []byte(b.Placeholder)
	forms := replace.Forms(h.value, mark, 0, h.memory.alloc)
	h.in = replace.New(forms)
	even := make([]replace.Pair, len(forms))
	for n, form := range forms {
		even[n] = replace.Pair{Old: form.Old, New: fit(form.New, len(form.Old))}
	}
	h.even = replace.New(even)
	return h
}

// fit gives text the length n.
func fit(text []byte, n int) []byte {
	fitted := make([]byte, n)
	for i := copy(fitted, text); i < n; i++ {
		fitted[i] = '*'
	}
	return fitted
}

// Again takes one more reference, which must be released too.
func (h *Held) Again() *Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refs++
	return h
}

// Release gives the value back. With its last reference it is wiped.
func (h *Held) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refs--; h.refs == 0 {
		h.memory.wipe()
	}
}

// Value is the value, for as long as it is held.
func (h *Held) Value() []byte { return h.value }

// In puts the placeholder in the place of the value, in all forms in which
// hosts write it.
func (h *Held) In() *replace.Table { return h.in }

// Even is In without a change of length, for framed streams.
func (h *Held) Even() *replace.Table { return h.even }

// Out puts the value in the place of the placeholder, as written says. The
// table may be used for as long as the value is held.
func (h *Held) Out(written func(value []byte) []byte) *replace.Table {
	value := h.value
	if written != nil {
		value = written(value)
	}
	return replace.New([]replace.Pair{{Old: []byte(h.Placeholder), New: value}})
}

// String keeps the value out of everything printed, as do the next ones.
func (*Held) String() string { return "[redacted]" }

// GoString implements fmt.GoStringer.
func (*Held) GoString() string { return "[redacted]" }

// MarshalJSON implements json.Marshaler.
func (*Held) MarshalJSON() ([]byte, error) { return []byte(`"[redacted]"`), nil }
