package slash

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
)

// Preferences are the settings that can be changed during a session.
type Preferences interface {
	Rows() []config.Row
	// Change sets a setting in the user's settings, or removes it there. It returns a message for the user.
	Change(key, value string, unset bool) (said string, err error)
}

// Config shows the settings and the source of each, secrets masked, and changes one.
func Config(p Preferences) Command {
	return Command{
		Name: "config", ShowsOnly: true, Args: "[KEY [VALUE]|unset KEY]", Help: "show the settings, or change one",
		Run: func(_ context.Context, c call) (outcome, error) {
			first, rest, _ := strings.Cut(strings.TrimSpace(c.Args), " ")
			rest = strings.TrimSpace(rest)
			switch {
			case first == "unset" && rest != "":
				return changeSetting(p, rest, "", true)
			case rest != "":
				return changeSetting(p, first, rest, false)
			}
			return showSettings(p.Rows(), first)
		},
	}
}

func changeSetting(p Preferences, key, value string, unset bool) (outcome, error) {
	said, err := p.Change(key, value, unset)
	if err != nil {
		return usageError("%v", err)
	}
	if unset {
		return showText(said)
	}
	if about, err := config.DescribeKey(key); err == nil && about.Secret {
		value = "****"
	}
	return showText(fmt.Sprintf("%s = %s: %s", key, sanitize.Line(sanitize.Mask(value), 200), said))
}

// showSettings returns the settings of a section, or with these letters in their names. A single setting is
// shown with its description.
func showSettings(rows []config.Row, words string) (outcome, error) {
	t := display.Table{Header: display.TextCells("setting", "value", "from")}
	matches := func(key string) bool { return strings.Contains(key, words) }
	section := func(key string) bool { return strings.HasPrefix(key, words+".") }
	switch {
	case slices.ContainsFunc(rows, func(r config.Row) bool { return r.Key == words }):
		matches = func(key string) bool { return key == words }
	case slices.ContainsFunc(rows, func(r config.Row) bool { return section(r.Key) }):
		matches = section
	}
	for _, r := range rows {
		if matches(r.Key) {
			t.Rows = append(t.Rows, slices.Concat(display.DataCells(r.Key, sanitize.Line(r.Value, 400)),
				display.TextCells(r.DisplayOrigin())))
		}
	}
	about, err := config.DescribeKey(words)
	switch {
	case len(t.Rows) == 0 && err != nil:
		return usageError("%v", err)
	case len(t.Rows) == 0, len(t.Rows) == 1 && t.Rows[0][0].Text != words || err != nil:
		return show(t)
	}
	t.Rows = append(t.Rows, display.DataCells(""), display.DataCells(about.Doc))
	return show(t, display.Text(fmt.Sprintf("Change it with: /config %s VALUE (%s)", words, about.ValidValues)))
}
