// Package clock lets time pass.
package clock

import (
	"context"
	"time"
)

// Sleep returns after d, or with the error of ctx when that ends.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
