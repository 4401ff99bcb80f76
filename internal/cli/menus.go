package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/policy/mode"
	"coder/internal/ui/lineedit"
)

// commandMenu returns the list for a command typed without arguments; without items the command runs.
func (t *terminal) commandMenu(input string) (p lineedit.Picker) {
	key, isValue := strings.CutSuffix(input, " ")
	switch {
	case input == "/config":
		return t.settingsMenu()
	case isValue && strings.HasPrefix(key, "/config "):
		return t.valueMenu(strings.TrimPrefix(key, "/config "))
	case input == exitCommand || input == "/quit":
		return t.exitMenu()
	case input == "/theme":
		return t.valueMenu("ui.theme")
	case input == "/mode":
		return t.modeMenu()
	case input == "/model":
		return t.modelMenu()
	case input == "/diff turn":
		return t.turnMenu()
	}
	return p
}

// exitCommand is the command for Ctrl+D.
const exitCommand = "/exit"

// exitMenu asks before you leave running background commands: they end with the session.
func (t *terminal) exitMenu() (p lineedit.Picker) {
	running := t.running()
	n := len(running)
	if n == 0 {
		return p
	}
	p.Title, p.Numbered = t.invocation.printer.T(display.Plural(n, "%d command runs in the background: ",
		"%d commands run in the background: "), n), true
	p.Items = []lineedit.Item{
		menuItem(t.invocation.printer.T("stop and leave"), singleLine(strings.Join(running, ", ")), exitCommand+" "),
		menuItem(t.invocation.printer.T("stay"), "", ""),
	}
	return p
}

func menuItem(text, note, value string) lineedit.Item {
	return lineedit.Item{Choice: lineedit.Choice{Text: text, Note: note}, Value: value}
}

// settingsMenu lists the settings with values, sources and descriptions. A setting with few values opens
// a list of them.
func (t *terminal) settingsMenu() lineedit.Picker {
	p := lineedit.Picker{Title: t.invocation.printer.T("setting: ")}
	for _, r := range t.app.Settings.Report.Rows() {
		about, err := config.DescribeKey(r.Key)
		if err != nil {
			continue
		}
		value := "/config " + r.Key
		if len(about.Values) > 0 {
			value += " "
		}
		note := strings.Join([]string{singleLine(r.Value), t.invocation.printer.TranslateText(r.Origin.DisplayText()),
			about.Doc}, t.separator())
		p.Items = append(p.Items, menuItem(r.Key, note, value))
	}
	return p
}

// valueMenu lists the values of a setting.
func (t *terminal) valueMenu(key string) lineedit.Picker {
	p := lineedit.Picker{Title: key + " = ", Numbered: true}
	about, err := config.DescribeKey(key)
	if err != nil {
		return p
	}
	for _, v := range about.Values {
		if v != "" {
			p.Items = append(p.Items, menuItem(v, "", "/config "+key+" "+v))
		}
	}
	p.Select("/config " + key + " " + t.settingValue(key))
	return p
}

// settingValue returns the value of a text setting.
func (t *terminal) settingValue(key string) string {
	if key == "ui.theme" {
		return t.app.Theme()
	}
	for _, r := range t.app.Settings.Report.Rows() {
		if r.Key == key {
			return strings.Trim(r.Value, `"`)
		}
	}
	return ""
}

// modeMenu lists the modes.
func (t *terminal) modeMenu() lineedit.Picker {
	p := lineedit.Picker{Title: t.invocation.printer.T("mode: "), Numbered: true}
	for _, m := range []struct{ name, about string }{
		{mode.Build, "ask before edits and commands"},
		{mode.Plan, "look and plan, change nothing"},
		{mode.Default, "like build, with a todo list and questions to you; checks when you ask"},
		{mode.AutoEdit, "edit freely, ask before commands"},
		{mode.Yolo, "run everything, ask nothing, check nothing"},
	} {
		p.Items = append(p.Items, menuItem(m.name, t.invocation.printer.TranslateText(m.about), "/mode "+m.name))
	}
	now, _ := t.app.ModeState.Current()
	p.Select("/mode " + now.Name)
	return p
}

// turnMenu lists the turns that changed files, the last one selected.
func (t *terminal) turnMenu() lineedit.Picker {
	p := lineedit.Picker{Title: t.invocation.printer.T("turn: "), Numbered: true}
	value := ""
	for i, turn := range t.host.Inside().ChangedTurns() {
		value = fmt.Sprintf("/diff turn %d", i+1)
		p.Items = append(p.Items, menuItem(turn.Title, t.invocation.printer.TranslateText(turn.Files()), value))
	}
	p.Select(value)
	return p
}

// modelMenu lists your favorites (provider.models), the server's other models, profiles, and the levels
// of reasoning effort.
func (t *terminal) modelMenu() lineedit.Picker {
	p := lineedit.Picker{Title: t.invocation.printer.T("model: "), Numbered: true}
	if t.app.IsScripted() {
		return p
	}
	ctx, stop := context.WithTimeout(context.Background(), modelsTimeout)
	defer stop()
	all, now := t.app.FetchModelNames(ctx), t.app.ModelName()
	favourites, profiles := t.app.FavoriteModels(), t.app.ProfileNames()
	names := slices.Concat(favourites, all)
	for i, name := range names {
		if slices.Index(names, name) < i {
			continue
		}
		var notes []string
		for _, n := range []struct {
			is   bool
			note string
		}{{name == now, "in use"}, {i < len(favourites), "favourite"}, {slices.Contains(profiles, name), "profile"}} {
			if n.is {
				notes = append(notes, t.invocation.printer.TranslateText(n.note))
			}
		}
		p.Items = append(p.Items, menuItem(name, strings.Join(notes, t.separator()), "/model "+name))
	}
	about, _ := config.DescribeKey("provider.effort") // the setting exists
	for _, level := range about.Values {
		if level != "" {
			p.Items = append(p.Items, menuItem(t.invocation.printer.T("effort: %s", level),
				t.invocation.printer.T("reasoning effort, where the model supports it"), "/config provider.effort "+level))
		}
	}
	p.Select("/model " + now)
	return p
}
