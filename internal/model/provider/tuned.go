package provider

import (
	"context"
	"iter"
)

// Tuned returns p with every request changed by tune before it is sent.
func Tuned(p Provider, tune func(*Request)) Provider { return tuned{p, tune} }

type tuned struct {
	next Provider
	tune func(*Request)
}

func (t tuned) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	t.tune(&req)
	return t.next.Stream(ctx, req)
}
