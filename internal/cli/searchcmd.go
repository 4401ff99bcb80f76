package cli

import (
	"context"
	"strings"

	"coder/internal/report/fulltext"
	"coder/internal/slash"
)

// runSearch searches all sessions of all projects.
func (inv *invocation) runSearch(ctx context.Context) error {
	words := fulltext.SplitQuery(strings.Join(inv.flags.args, " "))
	if len(words) == 0 {
		return usageErrorf("coder search needs words to search for")
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	all, err := a.SearchSessions(ctx, words)
	switch {
	case err != nil:
		return err
	case inv.flags.json:
		return inv.printJSON(all)
	}
	return inv.printBlocks(slash.HitBlocks(all, words)...)
}
