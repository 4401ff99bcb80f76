package cli

import (
	"context"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/policy/mode"
	"coder/internal/ui/lineedit"
)

// menu returns the list for a command typed without arguments; without items the command runs.
func (t *terminal) menu(input string) (p lineedit.Picker) {
	key, isValue := strings.CutSuffix(input, " ")
	switch {
	case input == "/config":
		return t.settingsMenu()
	case isValue && strings.HasPrefix(key, "/config "):
		return t.valueMenu(strings.TrimPrefix(key, "/config "))
	case input == leaveInput || input == "/quit":
		return t.leaveMenu()
	case input == "/theme":
		return t.valueMenu("ui.theme")
	case input == "/mode":
		return t.modeMenu()
	case input == "/model":
		return t.modelMenu()
	}
	return p
}

// leaveInput is the command for Ctrl+D.
const leaveInput = "/exit"

// leaveMenu asks before you leave running background commands: they end with the session.
func (t *terminal) leaveMenu() (p lineedit.Picker) {
	running := t.running()
	n := len(running)
	if n == 0 {
		return p
	}
	p.Title, p.Numbered = t.inv.words.T(display.Form(n, "%d command runs in the background: ", "%d commands run in the background: "), n), true
	p.Items = []lineedit.Item{
		item(t.inv.words.T("stop and leave"), oneLine(strings.Join(running, ", ")), leaveInput+" "),
		item(t.inv.words.T("stay"), "", ""),
	}
	return p
}

func item(text, note, value string) lineedit.Item {
	return lineedit.Item{Choice: lineedit.Choice{Text: text, Note: note}, Value: value}
}

// settingsMenu lists the settings with values, sources and descriptions. A setting with few values opens
// a list of them.
func (t *terminal) settingsMenu() lineedit.Picker {
	p := lineedit.Picker{Title: t.inv.words.T("setting: ")}
	for _, r := range t.app.Settings.Report.Rows() {
		about, err := config.AboutKey(r.Key)
		if err != nil {
			continue
		}
		value := "/config " + r.Key
		if len(about.Values) > 0 {
			value += " "
		}
		note := strings.Join([]string{oneLine(r.Value), t.inv.words.Said(r.Origin.Shown()), about.Doc}, t.apart())
		p.Items = append(p.Items, item(r.Key, note, value))
	}
	return p
}

// valueMenu lists the values of a setting.
func (t *terminal) valueMenu(key string) lineedit.Picker {
	p := lineedit.Picker{Title: key + " = ", Numbered: true}
	about, err := config.AboutKey(key)
	if err != nil {
		return p
	}
	for _, v := range about.Values {
		if v != "" {
			p.Items = append(p.Items, item(v, "", "/config "+key+" "+v))
		}
	}
	p.Choose("/config " + key + " " + t.now(key))
	return p
}

// now returns the value of a text setting.
func (t *terminal) now(key string) string {
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
	p := lineedit.Picker{Title: t.inv.words.T("mode: "), Numbered: true}
	for _, m := range []struct{ name, about string }{
		{mode.Build, "ask before edits and commands"},
		{mode.Plan, "look and plan, change nothing"},
		{mode.Default, "like build, with a todo list and questions to you; checks when you ask"},
		{mode.AutoEdit, "edit freely, ask before commands"},
		{mode.Yolo, "run everything, ask nothing, check nothing"},
	} {
		p.Items = append(p.Items, item(m.name, t.inv.words.Said(m.about), "/mode "+m.name))
	}
	now, _ := t.app.Modes.Current()
	p.Choose("/mode " + now.Name)
	return p
}

// modelMenu lists your favorites (provider.models), the server's other models, profiles, and the levels
// of reasoning effort.
func (t *terminal) modelMenu() lineedit.Picker {
	p := lineedit.Picker{Title: t.inv.words.T("model: "), Numbered: true}
	if t.app.Scripted() {
		return p
	}
	ctx, stop := context.WithTimeout(context.Background(), modelPatience)
	defer stop()
	all, now := t.app.Offered(ctx), t.app.ModelName()
	favourites, profiles := t.app.Favourites(), t.app.Profiles()
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
				notes = append(notes, t.inv.words.Said(n.note))
			}
		}
		p.Items = append(p.Items, item(name, strings.Join(notes, t.apart()), "/model "+name))
	}
	about, _ := config.AboutKey("provider.effort") // the setting exists
	for _, level := range about.Values {
		if level != "" {
			p.Items = append(p.Items, item(t.inv.words.T("effort: %s", level), t.inv.words.T("reasoning effort, where the model supports it"), "/config provider.effort "+level))
		}
	}
	p.Choose("/model " + now)
	return p
}
