package slash

import (
	"context"
	"slices"

	"coder/internal/core/display"
)

// KeyTable describes each key at the prompt, for the user.
func KeyTable() [][2]string { return slices.Clone(keys) }

var keys = [][2]string{
	{"Enter", "send; during a turn: queue for its next step"},
	{"Shift+Enter, Ctrl+J", "new line"},
	{"Esc", "stop the turn, dismiss a question, clear the draft"},
	{"Esc Esc", "on an empty line: rewind to an earlier message"},
	{"Ctrl+C", "quit; coder -c restores the draft"},
	{"Ctrl+D", "leave, on an empty line; so do the words exit and quit"},
	{"Ctrl+Z", "suspend; fg resumes"},
	{"Ctrl+O", "show the last omitted output, or a whole approval"},
	{"Ctrl+V", "attach the image in the clipboard; or drop a file here"},
	{"Ctrl+S", "stash the draft, or restore it"},
	{"Tab", "complete; on an empty line: plan mode on or off"},
	{"Shift+Tab", "next mode; at an edit: yes, and allow edits"},
	{"Up, Down", "earlier input; during a turn: queued input"},
	{"Ctrl+R", "search the input history of this project"},
	{"Ctrl+G", "edit the draft in your editor"},
	{"Ctrl+L", "clear the screen; the scrollback keeps the text"},
	{"Ctrl+A, Ctrl+E", "to the start, to the end of the line"},
	{"Alt+B, Alt+F", "one word left, one word right"},
	{"Ctrl+W, Ctrl+U, Ctrl+K", "cut the word, to the line start, to the line end"},
	{"Ctrl+Y, Alt+Y", "paste what was cut, or an earlier cut"},
	{"Ctrl+_", "undo the last edit"},
	{"@", "name a file; Tab completes the first match"},
	{"!", "run your own command; !! gives it the terminal"},
	{"/, ?", "a command; /help lists them; ? shows these keys"},
}

// lineKeys are the keys of a terminal that only prints lines.
var lineKeys = [][2]string{
	{"Enter", "send; during a turn: queue for its next step"},
	{"Esc", "stop the turn, dismiss a question, clear the draft"},
	{"Ctrl+C", "quit; coder -c restores the draft"},
	{"Ctrl+D", "quit, on an empty line"},
	{"Ctrl+Z", "suspend; fg resumes"},
	{"Ctrl+W, Ctrl+U", "cut the word, to the line start"},
	{"@", "name a file for the model to read"},
	{"!", "run your own command; !! gives it the terminal"},
	{"/, ?", "a command; /help lists them; ? shows these keys"},
	{"/mode, /resume", "switch the mode or session: no keys here"},
}

// Keys lists the keys, of a terminal that only prints lines those that it has, and own ones last.
func Keys(inLines bool, own [][2]string) Command {
	keys := keys
	if inLines {
		keys, own = lineKeys, nil
	}
	return Command{Name: "keys", ShowsOnly: true, Help: "list the keys",
		Run: func(context.Context, call) (outcome, error) {
			var t display.Table
			for _, k := range keys {
				t.Rows = append(t.Rows, []display.Cell{{Text: k[0]}, {Text: k[1], Words: true}})
			}
			for _, k := range own {
				t.Rows = append(t.Rows, display.DataCells(k[0], k[1]))
			}
			return show(t)
		}}
}
