package provider

import (
	"context"
	"iter"
)

// MapRequests returns p with every request changed by tune before it is sent.
func MapRequests(p Provider, tune func(*Request)) Provider { return requestMapper{p, tune} }

type requestMapper struct {
	next   Provider
	change func(*Request)
}

func (t requestMapper) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	t.change(&req)
	return t.next.Stream(ctx, req)
}
