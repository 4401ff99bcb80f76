package slash

import (
	"context"
	"slices"

	"coder/internal/core/display"
)

// KeyTable is what each key does at the prompt, for people.
func KeyTable() [][2]string { return slices.Clone(keys) }

var keys = [][2]string{
	{"Enter", "send; while a turn runs: for its next step"},
	{"Shift+Enter, Ctrl+J", "a new line"},
	{"Esc", "stop the turn, dismiss a question, throw the draft away"},
	{"Esc Esc", "on an empty line: back to before an earlier message"},
	{"Ctrl+C", "end the program; the draft is back with coder -c"},
	{"Ctrl+D", "leave, on an empty line; so do the words exit and quit"},
	{"Ctrl+Z", "put the program aside; fg brings it back"},
	{"Ctrl+S", "put the draft away, or bring it back"},
	{"Tab", "complete; on an empty line: plan and back"},
	{"Shift+Tab", "the next mode"},
	{"Up, Down", "what was sent before; while a turn runs: what is queued"},
	{"Ctrl+R", "search all that was typed in this project"},
	{"Ctrl+G", "write the draft in your editor"},
	{"Ctrl+L", "clear the screen; the scrollback has what was on it"},
	{"Ctrl+A, Ctrl+E", "to the start, to the end of the line"},
	{"Alt+B, Alt+F", "a word back, a word on"},
	{"Ctrl+W, Ctrl+U, Ctrl+K", "cut the word, the line before, the line behind"},
	{"Ctrl+Y, Alt+Y", "put in what was cut, or what was cut before"},
	{"Ctrl+_", "take the last change back"},
	{"@", "name a file; Tab takes the first one offered"},
	{"!", "run a command of your own; !! gives it the terminal"},
	{"/, ?", "a command; /help lists them; ? shows these keys"},
}

// lineKeys are those of a terminal that only prints lines.
var lineKeys = [][2]string{
	{"Enter", "send; while a turn runs: for its next step"},
	{"Esc", "stop the turn, dismiss a question, throw the draft away"},
	{"Ctrl+C", "end the program; the draft is back with coder -c"},
	{"Ctrl+D", "leave, on an empty line"},
	{"Ctrl+Z", "put the program aside; fg brings it back"},
	{"Ctrl+W, Ctrl+U", "cut the word, the line before"},
	{"@", "name a file for the model to read"},
	{"!", "run a command of your own; !! gives it the terminal"},
	{"/, ?", "a command; /help lists them; ? shows these keys"},
	{"/mode, /resume", "the mode, another session: there are no keys for them here"},
}

// Keys lists the keys, of a terminal that only prints lines those that it has.
func Keys(inLines bool) Command {
	keys := keys
	if inLines {
		keys = lineKeys
	}
	return Command{Name: "keys", Looks: true, Help: "list the keys", Run: func(context.Context, call) (outcome, error) {
		var t display.Table
		for _, k := range keys {
			t.Rows = append(t.Rows, []display.Cell{{Text: k[0]}, {Text: k[1], Words: true}})
		}
		return show(t)
	}}
}
