package lineedit

import "testing"

func TestParseKey(t *testing.T) {
	for name, want := range map[string]Key{
		"ctrl+t": CtrlKey('t'), "Ctrl+T": CtrlKey('t'), "alt+enter": {Name: Enter, Mod: Alt}, "shift+up": {Name: Up, Mod: Shift},
		"ctrl+alt+x": {Rune: 'x', Mod: Ctrl | Alt}, "pagedown": {Name: PageDown}, "alt++": AltKey('+'), "alt+ä": AltKey('ä'), "tab": {Name: Tab},
	} {
		if k, err := ParseKey(name); err != nil || k != want {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
	for _, name := range []string{"", "a", "shift+a", "esc", "ctrl+c", "ctl+t", "ctrl+", "ctrl+ctrl+t", "f99", "ctrl+ab", "ctrl+ "} {
		if k, err := ParseKey(name); err == nil {
			t.Errorf("%q is %+v", name, k)
		}
	}
}

// TestEveryActionIsDoneByAKey that means something without any binding.
func TestEveryActionIsDoneByAKey(t *testing.T) {
	outside := map[string]bool{"none": true, "stash": true, "show": true, "paste-picture": true} // what the caller does
	for _, name := range ActionNames() {
		k, ok := ActionKey(name)
		if _, bound := keyBindings[k]; !ok || !bound && !outside[name] {
			t.Errorf("%s: %+v", name, k)
		}
	}
}
