package orchestrator

import (
	"cmp"
	"context"
	"strings"

	"coder/internal/core/secret"
	"coder/internal/model/provider"
)

// replyFilter filters a reply before it is shown: it masks keys, including keys
// that arrive in pieces, so that the screen shows what the record will have.
type replyFilter struct {
	orch            *Orchestrator
	st              *turnState
	text, reasoning maskedText
}

// maskedText is one of a reply's two texts.
type maskedText struct {
	shown strings.Builder
	*secret.ConcealingWriter
}

// discardPending drops text that was held back.
func (g *replyFilter) discardPending() {
	for _, p := range []*maskedText{&g.text, &g.reasoning} {
		p.shown.Reset()
		p.ConcealingWriter = g.orch.Concealer.Writer(&p.shown)
	}
}

// write returns what can be shown of a piece.
func (p *maskedText) write(piece string) string {
	_, _ = p.Write([]byte(piece)) // to memory
	return p.takeShown()
}

func (p *maskedText) takeShown() string {
	defer p.shown.Reset()
	return p.shown.String()
}

// show shows a piece of a reply, except an end that may be part of a key.
func (g *replyFilter) show(ctx context.Context, d provider.Delta) error {
	switch piece := d.(type) {
	case provider.TextDelta:
		if err := g.flushReasoning(ctx); err != nil { // its text precedes this piece
			return err
		}
		if d = provider.TextDelta(g.text.write(string(piece))); d == provider.TextDelta("") {
			return nil
		}
	case provider.ReasoningDelta:
		if err := g.flushText(ctx); err != nil {
			return err
		}
		piece.Text = g.reasoning.write(piece.Text)
		d = piece
	case provider.Restart:
		g.discardPending()
	case provider.CallDelta:
		return g.flush(ctx)
	}
	return g.orch.showDelta(ctx, g.st, d)
}

// flush shows text that was held back.
func (g *replyFilter) flush(ctx context.Context) error {
	return cmp.Or(g.flushReasoning(ctx), g.flushText(ctx))
}

func (g *replyFilter) flushReasoning(ctx context.Context) error {
	_ = g.reasoning.Flush() // to memory
	if text := g.reasoning.takeShown(); text != "" {
		return g.orch.showDelta(ctx, g.st, provider.ReasoningDelta{Text: text})
	}
	return nil
}

func (g *replyFilter) flushText(ctx context.Context) error {
	_ = g.text.Flush() // to memory
	if text := g.text.takeShown(); text != "" {
		return g.orch.showDelta(ctx, g.st, provider.TextDelta(text))
	}
	return nil
}
