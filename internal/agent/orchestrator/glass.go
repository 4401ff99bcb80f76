package orchestrator

import (
	"cmp"
	"context"
	"strings"

	"coder/internal/core/secret"
	"coder/internal/model/provider"
)

// glass filters a reply before it is shown: it masks keys, including keys
// that arrive in pieces, so that the screen shows what the record will have.
type glass struct {
	o             *Orchestrator
	st            *turnState
	text, thought pane
}

// pane is one of a reply's two texts.
type pane struct {
	clear strings.Builder
	*secret.ConcealingWriter
}

// clean drops text that was held back.
func (g *glass) clean() {
	for _, p := range []*pane{&g.text, &g.thought} {
		p.clear.Reset()
		p.ConcealingWriter = g.o.Conceals.Writer(&p.clear)
	}
}

// take returns what can be shown of a piece.
func (p *pane) take(piece string) string {
	_, _ = p.Write([]byte(piece)) // to memory
	return p.taken()
}

func (p *pane) taken() string {
	defer p.clear.Reset()
	return p.clear.String()
}

// show shows a piece of a reply, except an end that may be part of a key.
func (g *glass) show(ctx context.Context, d provider.Delta) error {
	switch piece := d.(type) {
	case provider.TextDelta:
		if err := g.flushThought(ctx); err != nil { // its text precedes this piece
			return err
		}
		if d = provider.TextDelta(g.text.take(string(piece))); d == provider.TextDelta("") {
			return nil
		}
	case provider.ReasoningDelta:
		if err := g.flushText(ctx); err != nil {
			return err
		}
		piece.Text = g.thought.take(piece.Text)
		d = piece
	case provider.Restart:
		g.clean()
	case provider.CallDelta:
		return g.flush(ctx)
	}
	return g.o.show(ctx, g.st, d)
}

// flush shows text that was held back.
func (g *glass) flush(ctx context.Context) error {
	return cmp.Or(g.flushThought(ctx), g.flushText(ctx))
}

func (g *glass) flushThought(ctx context.Context) error {
	_ = g.thought.Flush() // to memory
	if text := g.thought.taken(); text != "" {
		return g.o.show(ctx, g.st, provider.ReasoningDelta{Text: text})
	}
	return nil
}

func (g *glass) flushText(ctx context.Context) error {
	_ = g.text.Flush() // to memory
	if text := g.text.taken(); text != "" {
		return g.o.show(ctx, g.st, provider.TextDelta(text))
	}
	return nil
}
