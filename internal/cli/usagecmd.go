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
	by := usage.By(inv.flags.by)
	if by == "" {
		by = usage.Day
	}
	t := &usage.Tally{By: by, Since: since, Zone: time.Local, Priced: a.Priced}
	if err := a.Usage(ctx, t); err != nil {
		return err
	}
	all, total := t.Sums()
	switch {
	case inv.flags.json:
		return inv.printJSON(usageReport{by, since, all, total})
	case len(all) == 0:
		return inv.tell(inv.words.T("no model usage recorded since %s", since.Format(time.DateOnly)))
	}
	table := display.Table{Head: display.Words(string(by), "sessions", "requests", "in", "cached", "out", "cost")}
	for _, s := range all {
		table.Rows = append(table.Rows, slices.Concat(display.Data(oneLine(s.Of)), usageCells(s)))
	}
	table.Rows = append(table.Rows, slices.Concat(display.Words("all"), usageCells(total)))
	blocks := []display.Block{table}
	if total.Unpriced {
		blocks = append(blocks, display.Text("unknown prices are not included in the cost; provider.model_info can set them"))
	}
	return inv.show(blocks...)
}

func usageCells(s usage.Sum) []display.Cell {
	n := strconv.Itoa
	cost := display.Data(fmt.Sprintf("$%.4f", s.Cost))
	if s.Unpriced && s.Cost == 0 {
		cost = display.Words("unknown")
	}
	return slices.Concat(display.Data(n(s.Sessions), n(s.Requests), n(s.In), n(s.Cached), n(s.Out)), cost)
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
		return time.Time{}, usagef("--since must be a day such as 2026-11-01 or an age such as 30d, 2w or 12h, not %q", text)
	}
	return now.Add(-age), nil
}

// usageReport is the usage in JSON output.
type usageReport struct {
	By    usage.By    `json:"by"`
	Since time.Time   `json:"since"`
	Sums  []usage.Sum `json:"sums"`
	Total usage.Sum   `json:"total"`
}
