package cli

import (
	"encoding/json"
	"strconv"
	"strings"

	"coder/internal/app"
	"coder/internal/config"
)

// configVerbs lists the commands of coder config.
var configVerbs = []string{"show", "list", "get", "set", "unset", "path", "schema"}

// settingRow is a setting in JSON output.
type settingRow struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`
	Origin string          `json:"origin"`
	About  string          `json:"about,omitempty"`
	Locked string          `json:"locked,omitempty"` // the managed settings that bound it
}

func newSettingRow(r config.Row) settingRow {
	about, _ := config.DescribeKey(r.Key) // a row always has a known key
	row := settingRow{Key: r.Key, Value: json.RawMessage(r.Value), Origin: r.Origin.String(), About: about.Doc}
	if r.Lock.Source != "" {
		row.Locked = r.Lock.String()
	}
	return row
}

// listSettings prints the settings whose names or descriptions contain the words.
func (inv *invocation) listSettings(words []string) error {
	if inv.loadErr != nil {
		return inv.loadErr
	}
	rows := []settingRow{}
	var lines []string
	for _, r := range inv.settings.Report.Rows() {
		row := newSettingRow(r)
		text, has := strings.ToLower(row.Key+" "+row.About), true
		for _, w := range words {
			has = has && strings.Contains(text, strings.ToLower(w))
		}
		if has {
			rows = append(rows, row)
			lines = append(lines, row.Key+" = "+singleLine(r.Value)+"  ("+inv.printer.TranslateText(r.DisplayOrigin())+")",
				"    "+row.About)
		}
	}
	switch {
	case inv.flags.json:
		return inv.printJSON(rows)
	case len(rows) == 0:
		return inputErrorf("no setting matches %s", singleLine(strings.Join(words, " ")))
	}
	return inv.printWrapped(lines...)
}

// getSetting prints the value of a setting: text as is, anything else as JSON.
func (inv *invocation) getSetting(args []string) error {
	if len(args) != 1 {
		return usageErrorf("coder config get needs the name of a setting: coder config get KEY")
	}
	if inv.loadErr != nil {
		return inv.loadErr
	}
	key := args[0]
	var found []config.Row
	for _, r := range inv.settings.Report.Rows() {
		if r.Key == key {
			found = []config.Row{r}
			break
		}
		if strings.HasPrefix(r.Key, key+".") {
			found = append(found, r)
		}
	}
	_, err := config.DescribeKey(key)
	switch {
	case len(found) == 0 && err != nil:
		return inputErrorf("%v", err)
	case len(found) == 0:
		return inputErrorf("%s is not set", key)
	case inv.flags.json && len(found) == 1:
		return inv.printJSON(newSettingRow(found[0]))
	case inv.flags.json:
		rows := make([]settingRow, len(found))
		for i, r := range found {
			rows[i] = newSettingRow(r)
		}
		return inv.printJSON(rows)
	case len(found) == 1:
		text := found[0].Value
		if s, err := strconv.Unquote(text); err == nil {
			text = s
		}
		return inv.print(inv.sanitizeText(text))
	}
	lines := make([]string, len(found))
	for i, r := range found {
		lines[i] = r.Key + " = " + inv.sanitizeText(r.Value)
	}
	return inv.print(lines...)
}

// changeSetting sets or removes a setting in your settings or the project's.
func (inv *invocation) changeSetting(verb string, args []string) error {
	fl := inv.flags
	switch {
	case verb == "set" && len(args) != 2:
		return usageErrorf("usage: coder config set KEY VALUE [--project]")
	case verb == "unset" && len(args) != 1:
		return usageErrorf("usage: coder config unset KEY [--project]")
	case inv.settings.Root == "":
		return inv.loadErr
	}
	c := app.SettingChange{Key: args[0], Unset: verb == "unset", Project: fl.inProject}
	if verb == "set" {
		c.Value = args[1]
	}
	done, err := inv.settings.ChangeSetting(inv.Env.Env, fl.Options, c)
	if err != nil {
		return err
	}
	if fl.json {
		rows := make([]settingRow, len(done.Rows))
		for i, r := range done.Rows {
			rows[i] = newSettingRow(r)
		}
		return inv.printJSON(settingChange{verb == "set" || done.WasSet, done.Path, rows})
	}
	var lines []string
	switch {
	case verb == "unset" && !done.WasSet:
		lines = append(lines, inv.printer.T("%s is not set in %s", c.Key, done.Path))
	case verb == "unset":
		lines = append(lines, inv.printer.T("Removed %s from %s.", c.Key, done.Path))
	default:
		lines = append(lines, inv.printer.T("Saved to %s:", done.Path))
	}
	for _, r := range done.Rows {
		lines = append(lines, "  "+r.Key+" = "+singleLine(r.Value)+"  ("+inv.printer.TranslateText(r.DisplayOrigin())+")")
	}
	if done.Override.Source != "" {
		lines = append(lines, inv.printer.T("%s takes precedence over this file.",
			inv.printer.TranslateText(done.Override.DisplayText())))
	}
	return inv.printWrapped(lines...)
}

// settingChange is the result of a change in JSON output.
type settingChange struct {
	Changed  bool         `json:"changed"`
	File     string       `json:"file"`
	Settings []settingRow `json:"settings"`
}
