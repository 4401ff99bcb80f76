package lineedit

import "testing"

func TestParseKey(t *testing.T) {
	for name, want := range map[string]Key{
		"ctrl+t": WithCtrl('t'), "Ctrl+T": WithCtrl('t'), "alt+enter": {Name: Enter, Mod: Alt}, "shift+up": {Name: Up, Mod: Shift},
		"ctrl+alt+x": {Rune: 'x', Mod: Ctrl | Alt}, "pagedown": {Name: PageDown}, "alt++": WithAlt('+'), "alt+ä": WithAlt('ä'), "tab": {Name: Tab},
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
	outside := map[string]bool{"none": true, "stash": true, "show": true} // what the caller does
	for _, name := range Actions() {
		k, ok := Does(name)
		if _, bound := bindings[k]; !ok || !bound && !outside[name] {
			t.Errorf("%s: %+v", name, k)
		}
	}
}
