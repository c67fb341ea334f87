package cli

import (
	"context"
	"errors"
	"sync"
)

// eachAtOnce is the number of sandboxes that a command works on at once.
const eachAtOnce = 8

// forEach works on many, several at once, and gives the errors in their order. A
// failure stops no other; after an interrupt none is begun.
func forEach(ctx context.Context, names []string, atOnce int, do func(ctx context.Context, n int, name string) error) error {
	problems := make([]error, len(names))
	slots := make(chan struct{}, max(atOnce, 1))
	var working sync.WaitGroup
	for n, name := range names {
		slots <- struct{}{}
		if err := ctx.Err(); err != nil {
			problems[n] = err
			break
		}
		working.Go(func() {
			defer func() { <-slots }()
			problems[n] = do(ctx, n, name)
		})
	}
	working.Wait()
	return errors.Join(problems...)
}
