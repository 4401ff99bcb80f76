package app

import (
	"context"

	"coder/internal/core/chat"
	"coder/internal/report/asof"
	"coder/internal/report/export"
	"coder/internal/report/ledger"
)

// WithCost returns a model's usage with its cost, if known.
func (a *Models) WithCost(model string, u chat.Usage) chat.Usage {
	return a.newMeter().WithCost(model, u)
}

// BuildLedger returns what filled a session's window up to one of
// its records, with its cost; zero means the last record.
func (a *Models) BuildLedger(ctx context.Context, id string, until uint64) (*ledger.Ledger, error) {
	return a.Store().ledger(ctx, id, until, a.newMeter().WithCost)
}

func (s *Store) ledger(ctx context.Context, id string, until uint64,
	price func(string, chat.Usage) chat.Usage) (*ledger.Ledger, error) {
	b := ledger.New(price)
	for r, err := range asof.Until(s.Logs.Read(ctx, id, 0), until) {
		if err != nil {
			return nil, err
		}
		b.Add(r)
	}
	return b.Finish(), nil
}

// fillingChart returns the chart of the window's content from request to request.
func fillingChart(b *ledger.Ledger) (f export.WindowUsage) {
	for _, k := range ledger.Kinds {
		f.Kinds = append(f.Kinds, string(k))
	}
	for _, r := range b.Requests {
		column := export.RequestUsage{Seq: r.Seq, Cached: r.Usage.Cached}
		for _, k := range ledger.Kinds {
			column.Tokens = append(column.Tokens, r.ByKind[k])
		}
		f.Requests = append(f.Requests, column)
	}
	for _, d := range b.Drops {
		f.Drops = append(f.Drops, d.Seq)
	}
	return f
}
