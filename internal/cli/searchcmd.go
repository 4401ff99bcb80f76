package cli

import (
	"context"
	"strings"

	"coder/internal/record/fulltext"
)

// hitsShown is how many sessions a search shows.
const hitsShown = 30

// runSearch finds words in all sessions of all projects.
func (inv *invocation) runSearch(ctx context.Context) error {
	words := fulltext.Words(strings.Join(inv.flags.args, " "))
	if len(words) == 0 {
		return usagef("coder search needs words to look for")
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	all, err := a.Search(ctx, words)
	switch {
	case err != nil:
		return err
	case inv.flags.json:
		return inv.printJSON(all)
	case len(all) == 0:
		return inv.tell(inv.words.T("no session has all of these words"))
	}
	var lines []string
	for _, f := range all[:min(len(all), hitsShown)] {
		lines = append(lines, strings.Join([]string{f.Updated.Local().Format("2006-01-02 15:04"), oneLine(f.Project), f.Session, oneLine(f.Title)}, "  "))
		if f.Line != "" {
			lines = append(lines, "    "+inv.words.T("%s: %s", inv.words.T(string(f.Kind)), fulltext.Mark(oneLine(f.Line), words, "**", "**")))
		}
	}
	if more := len(all) - hitsShown; more > 0 {
		lines = append(lines, inv.words.T("and %d older", more))
	}
	return inv.print(lines...)
}
