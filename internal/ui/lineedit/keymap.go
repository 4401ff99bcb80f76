package lineedit

import (
	"slices"
	"strings"
	"unicode/utf8"

	"coder/internal/core/message"
)

// actions names what keys do, each by the key that does it unless it is bound to another.
var actions = []struct {
	name string
	key  Key
}{
	{"none", Key{}}, {"send", Key{Name: Enter}}, {"newline", CtrlKey('j')}, {"stop", Key{Name: Escape}},
	{"quit", CtrlKey('c')},
	{"leave", CtrlKey('d')}, {"suspend", CtrlKey('z')}, {"redraw", CtrlKey('l')}, {"external-editor", CtrlKey('g')},
	{"stash", CtrlKey('s')},
	{"show", CtrlKey('o')}, {"complete", Key{Name: Tab}}, {"next-mode", Key{Name: Tab, Mod: Shift}},
	{"older", Key{Name: Up}},
	{"newer", Key{Name: Down}}, {"search", CtrlKey('r')}, {"left", Key{Name: Left}}, {"right", Key{Name: Right}},
	{"line-start", CtrlKey('a')}, {"line-end", CtrlKey('e')}, {"draft-start", Key{Name: Home, Mod: Ctrl}},
	{"draft-end", Key{Name: End, Mod: Ctrl}},
	{"word-left", AltKey('b')}, {"word-right", AltKey('f')}, {"delete-left", Key{Name: Backspace}},
	{"delete-right", Key{Name: Delete}},
	{"cut-word", CtrlKey('w')}, {"cut-word-left", Key{Name: Backspace, Mod: Alt}}, {"cut-word-right", AltKey('d')},
	{"cut-line-start", CtrlKey('u')}, {"cut-line-end", CtrlKey('k')}, {"paste", CtrlKey('y')},
	{"paste-older", AltKey('y')}, {"paste-picture", CtrlKey('v')}, {"undo", CtrlKey('_')},
}

// ActionNames are the names of what a key can be bound to.
func ActionNames() (names []string) {
	for _, a := range actions {
		names = append(names, a.name)
	}
	return names
}

// ActionKey is the key that does an action where nothing else is bound to it.
func ActionKey(action string) (k Key, ok bool) {
	for _, a := range actions {
		if a.name == action {
			return a.key, true
		}
	}
	return k, false
}

var namedKeys = map[Name]string{
	Enter: "enter", Tab: "tab", Escape: "esc", Backspace: "backspace", Delete: "delete", Insert: "insert", Up: "up",
	Down: "down",
	Left: "left", Right: "right", Home: "home", End: "end", PageUp: "pageup", PageDown: "pagedown",
}

var modNames = []struct {
	name string
	mod  Mod
}{{"ctrl+", Ctrl}, {"alt+", Alt}, {"shift+", Shift}}

// ParseKey reads the name of a key that can be bound: ctrl+t, alt+enter, shift+up. A key that types itself
// keeps doing so, Esc stops a turn, and Ctrl+C ends the program, whatever else is bound.
func ParseKey(name string) (k Key, err error) {
	rest := strings.ToLower(name)
	for found := true; found; {
		found = false
		for _, m := range modNames {
			if after, ok := strings.CutPrefix(rest, m.name); ok && k.Mod&m.mod == 0 && after != "" {
				rest, k.Mod, found = after, k.Mod|m.mod, true
			}
		}
	}
	for n, word := range namedKeys {
		if rest == word {
			k.Name = n
		}
	}
	if k.Name == Char {
		r, n := utf8.DecodeRuneInString(rest)
		if n != len(rest) || r == utf8.RuneError || r <= ' ' {
			return Key{}, message.Errorf("unknown key %q", name)
		}
		k.Rune = r
	}
	if k.Name == Char && k.Mod&^Shift == 0 || slices.Contains([]Key{{Name: Escape}, CtrlKey('c')}, k) {
		return Key{}, message.Errorf("the key %q cannot be bound", name)
	}
	return k, nil
}
