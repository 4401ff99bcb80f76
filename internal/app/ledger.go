package app

import (
	"context"

	"coder/internal/core/chat"
	"coder/internal/report/asof"
	"coder/internal/report/export"
	"coder/internal/report/ledger"
)

// Priced returns a model's usage with its cost, if known.
func (a *Models) Priced(model string, u chat.Usage) chat.Usage { return a.newMeter().Priced(model, u) }

// Ledger returns what filled a session's window up to one of
// its records, with its cost; zero means the last record.
func (a *Models) Ledger(ctx context.Context, id string, until uint64) (*ledger.Book, error) {
	return a.Store().ledger(ctx, id, until, a.newMeter().Priced)
}

func (s *Store) ledger(ctx context.Context, id string, until uint64, price func(string, chat.Usage) chat.Usage) (*ledger.Book, error) {
	b := ledger.New(price)
	for r, err := range asof.Until(s.Logs.Read(ctx, id, 0), until) {
		if err != nil {
			return nil, err
		}
		b.Add(r)
	}
	return b.Done(), nil
}

// filling returns the chart of the window's content from request to request.
func filling(b *ledger.Book) (f export.Filling) {
	for _, k := range ledger.Kinds {
		f.Kinds = append(f.Kinds, string(k))
	}
	for _, r := range b.Requests {
		column := export.Column{Seq: r.Seq, Cached: r.Usage.Cached}
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
