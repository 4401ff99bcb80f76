package cli

import (
	"path/filepath"

	"coder/internal/config"
	"coder/internal/core/nearest"
	"coder/internal/slash"
	"coder/internal/ui/lineedit"
)

// bindKeys reads your own keys, and warns of what is wrong with them: the other keys are bound.
func (t *terminal) bindKeys() map[lineedit.Key]lineedit.Key {
	if t.app.Home == "" {
		return nil
	}
	bindings, err := config.LoadKeys(filepath.Join(t.app.Home, config.KeysFile))
	if err != nil {
		t.warn(err.Error())
	}
	bound := make(map[lineedit.Key]lineedit.Key)
	for _, b := range bindings {
		key, err := lineedit.ParseKey(b.Key)
		if err != nil {
			t.warn(b.NewError(err.Error()).Error())
			continue
		}
		does, ok := lineedit.ActionKey(b.Action)
		if !ok {
			text := t.invocation.printer.T("unknown action %q", b.Action)
			if near := nearest.Find(b.Action, lineedit.ActionNames()); near != "" {
				text += t.invocation.printer.T("; did you mean %s?", near)
			}
			t.warn(b.NewError(text).Error())
			continue
		}
		bound[key] = does
		t.shown.KeyBindings = append(t.shown.KeyBindings, [2]string{b.Key, b.Action})
	}
	return bound
}

// keyTable is what each key does, in the person's language; their own keys stand last.
func (t *terminal) keyTable() [][2]string {
	all := slash.KeyTable()
	for i, k := range all {
		all[i][1] = t.invocation.printer.TranslateText(k[1])
	}
	return append(all, t.shown.KeyBindings...)
}
