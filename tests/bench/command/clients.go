package command

import (
	"context"
	"slices"
	"sync"
	"time"
)

// The clients of a server that is measured.

// Clients runs n clients of a server at once, and returns how long each of their requests took, of the first client first. one is
// called for each, by number, and appends to took. Where one fails, ctx is cancelled for the others, and its error returned.
func Clients(ctx context.Context, n int, one func(ctx context.Context, number int, took *[]time.Duration) error) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([][]time.Duration, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := one(ctx, i, &took[i]); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return slices.Concat(took...), nil
}
