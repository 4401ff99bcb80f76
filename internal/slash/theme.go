package slash

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coder/internal/config"
)

// Theme shows the color theme, or changes it now and for later.
func Theme(p Preferences) Command {
	about, _ := config.DescribeKey(themeKey) // the setting exists
	return Command{
		Name: "theme", ShowsOnly: true, Args: "[" + strings.Join(about.Values, "|") + "]",
		Help: "show the theme of the screen, or change it",
		Run: func(_ context.Context, c call) (outcome, error) {
			name := strings.TrimSpace(c.Args)
			if name != "" {
				return changeSetting(p, themeKey, name, false)
			}
			rows := p.Rows()
			i := slices.IndexFunc(rows, func(r config.Row) bool { return r.Key == themeKey })
			return showText(fmt.Sprintf("theme: %s", strings.Trim(rows[i].Value, `"`)))
		},
	}
}

const themeKey = "ui.theme"
