package app

import (
	"context"

	"coder/internal/agent/ledger"
	"coder/internal/core/chat"
	"coder/internal/record/export"
)

// Ledger tells what filled the window in a session and what that cost. Tools are
// the sizes of those that are offered, where they are known.
func (a *App) Ledger(ctx context.Context, id string, tools map[string]int) (*ledger.Book, error) {
	return a.Store().ledger(ctx, id, a.newMeter().Priced, tools)
}

func (s *Store) ledger(ctx context.Context, id string, price func(string, chat.Usage) chat.Usage, tools map[string]int) (*ledger.Book, error) {
	b := ledger.New(price, tools)
	for r, err := range s.Logs.Read(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		b.Add(r)
	}
	return b.Done(), nil
}

// filling is the picture of what filled the window from request to request.
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
