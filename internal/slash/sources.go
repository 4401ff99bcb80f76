package slash

import (
	"fmt"
	"slices"
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/report/ledger"
)

// maxSources is the most sources of window content shown.
const maxSources = 25

// Sources shows where the window's content comes from, its cost in all requests, what was dropped and
// where the provider's cache broke. session is its name in commands.
func Sources(b *ledger.Ledger, session string) display.Blocks {
	if len(b.Requests) == 0 {
		return nil
	}
	t := display.Table{Header: display.TextCells("source", "what", "in the window", "total sent", "from the cache",
		"cost")}
	shown, more := 0, 0
	for _, e := range b.Entries {
		if e.Kind != ledger.Tool { // tools are listed one by one
			shown++
		}
		if shown > maxSources && e.Kind != ledger.Tool {
			more++
			continue
		}
		now := display.DataCells(strconv.Itoa(e.Tokens))
		if e.Dropped {
			now = display.TextCells("dropped")
		}
		kind := string(e.Kind)
		if e.Kind == ledger.Tool && e.Name == "" {
			kind = "all tools"
		}
		t.Rows = append(t.Rows, slices.Concat(display.TextCells(kind), display.DataCells(e.Name), now,
			display.DataCells(strconv.Itoa(e.Sent), strconv.Itoa(e.Cached), formatUSD(e.Cost, b.Total))))
	}
	text := "\n" + requestSummary(b)
	if a, all := b.SideUsage, b.Total.Add(b.SideUsage); a.In+a.Out > 0 {
		text += fmt.Sprintf("\nsummaries, subtasks and cut-off replies also used %d tokens in, %d out, cost %s", a.In, a.Out,
			formatUSD(a.Cost, a)) +
			fmt.Sprintf("\ntotal: %d tokens in, %d out, cost %s", all.In, all.Out, formatUSD(all.Cost, all))
	}
	blocks := display.Blocks{display.Text(text +
		"\nby source; the tokens of a part are estimates, scaled to the provider's count"), t}
	if more > 0 {
		blocks = append(blocks, display.Text(fmt.Sprintf(display.Plural(more,
			"%d more source; coder context %s --json shows all", "%d more sources; coder context %s --json shows all"), more,
			session)))
	}
	if len(b.Drops) > 0 {
		drops := display.Table{Header: display.TextCells("record", "action", "messages dropped", "shortened", "tokens before",
			"tokens after")}
		for _, d := range b.Drops {
			drops.Rows = append(drops.Rows, slices.Concat(display.DataCells("#"+strconv.FormatUint(d.Seq, 10)),
				display.TextCells(d.Reason),
				display.DataCells(strconv.Itoa(d.Messages), strconv.Itoa(d.Shortened), strconv.Itoa(d.Before),
					strconv.Itoa(d.After))))
		}
		last := b.Drops[len(b.Drops)-1].Seq
		blocks = append(blocks, display.Text(fmt.Sprintf("\nshortened; coder show %s --at %d shows the original", session,
			last-1)), drops)
	}
	if len(b.Breaks) > 0 {
		breaks := display.Table{Header: display.TextCells("reply", "why", "tokens re-read")}
		for _, k := range b.Breaks {
			breaks.Rows = append(breaks.Rows, slices.Concat(display.DataCells("#"+strconv.FormatUint(k.Seq, 10)),
				display.TextCells(k.Reason), display.DataCells(strconv.Itoa(k.RereadTokens))))
		}
		blocks = append(blocks, display.Text("\nthe prompt cache broke"), breaks)
	}
	return blocks
}

// requestSummary summarizes all requests.
func requestSummary(b *ledger.Ledger) string {
	u := b.Total
	return fmt.Sprintf(display.Plural(len(b.Requests),
		"%d request: %d tokens sent, %d of them from the cache, %d received, cost %s",
		"%d requests: %d tokens sent, %d of them from the cache, %d received, cost %s"), len(b.Requests), u.In, u.Cached,
		u.Out, formatUSD(u.Cost, u))
}

// formatUSD formats an amount; a dash if the price is unknown.
func formatUSD(usd float64, of chat.Usage) string {
	if usd == 0 && of.Unpriced {
		return "-"
	}
	return fmt.Sprintf("$%.4f", usd)
}
