package slash

import (
	"context"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
)

// Config shows the settings and where each comes from, secrets masked.
func Config(settings func() []config.Row) Command {
	return Command{
		Name: "config", Reads: true, Args: "[KEY]", Help: "show the settings and where each comes from",
		Run: func(_ context.Context, c call) (outcome, error) {
			rows := settings()
			t := display.Table{Head: display.Words("setting", "value", "from")}
			matches := func(key string) bool { return strings.Contains(key, c.Args) }
			section := func(key string) bool { return strings.HasPrefix(key, c.Args+".") }
			if slices.ContainsFunc(rows, func(r config.Row) bool { return section(r.Key) }) {
				matches = section
			}
			for _, r := range rows {
				if matches(r.Key) {
					t.Rows = append(t.Rows, slices.Concat(display.Data(r.Key, sanitize.Line(r.Value, 400)), display.Words(r.Origin.Shown())))
				}
			}
			key, _, more := strings.Cut(c.Args, " ")
			switch {
			case len(t.Rows) == 0 && more && slices.ContainsFunc(rows, func(r config.Row) bool { return r.Key == key }):
				return wrong("/config shows %s and changes nothing; edit ~/.coder/config.json or a project's .coder/config.json", key)
			case len(t.Rows) == 0:
				return wrong("unknown setting %s", c.Args)
			}
			return show(t)
		},
	}
}
