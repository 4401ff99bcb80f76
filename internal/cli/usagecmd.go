package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"coder/internal/core/display"
	"coder/internal/report/usage"
)

// runUsage shows what models used and cost in all sessions of all projects.
func (inv *invocation) runUsage(ctx context.Context) error {
	since, err := parseSince(inv.flags.since, inv.Now())
	if err != nil {
		return err
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	by := usage.Grouping(inv.flags.groupBy)
	if by == "" {
		by = usage.Day
	}
	t := &usage.Tally{By: by, Since: since, Location: time.Local, WithCost: a.WithCost}
	if err := a.Usage(ctx, t); err != nil {
		return err
	}
	all, total := t.Sums()
	switch {
	case inv.flags.json:
		return inv.printJSON(usageReport{by, since, all, total})
	case len(all) == 0:
		return inv.printWrapped(inv.printer.T("no model usage recorded since %s", since.Format(time.DateOnly)))
	}
	table := display.Table{Header: display.TextCells(string(by), "sessions", "requests", "in", "cached", "out", "cost")}
	for _, s := range all {
		table.Rows = append(table.Rows, slices.Concat(display.DataCells(singleLine(s.Key)), usageCells(s)))
	}
	table.Rows = append(table.Rows, slices.Concat(display.TextCells("all"), usageCells(total)))
	blocks := []display.Block{table}
	if total.Unpriced {
		blocks = append(blocks, display.Text("unknown prices are not included in the cost; provider.model_info can set them"))
	}
	return inv.printBlocks(blocks...)
}

func usageCells(s usage.Sum) []display.Cell {
	n := strconv.Itoa
	cost := display.DataCells(fmt.Sprintf("$%.4f", s.Cost))
	if s.Unpriced && s.Cost == 0 {
		cost = display.TextCells("unknown")
	}
	return slices.Concat(display.DataCells(n(s.Sessions), n(s.Requests), n(s.In), n(s.Cached), n(s.Out)), cost)
}

// parseSince parses a day such as 2026-11-01, or an age.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		text = "30d"
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	age, err := parseAge(text)
	if err != nil {
		return time.Time{}, usageErrorf("--since must be a day such as 2026-11-01 or an age such as 30d, 2w or 12h, not %q", text)
	}
	return now.Add(-age), nil
}

// usageReport is the usage in JSON output.
type usageReport struct {
	By    usage.Grouping `json:"by"`
	Since time.Time      `json:"since"`
	Sums  []usage.Sum    `json:"sums"`
	Total usage.Sum      `json:"total"`
}
