package lineedit

// maxUndo is the most bytes of text kept for undo.
const maxUndo = 8 << 20

// undo saves the draft's text before each step. The zero value is empty.
type undo struct {
	past  []moment
	bytes int
	open  bool // the newest step is a run of typing that continues
}

type moment struct {
	text string
	at   int
}

// keep saves a text before it changes.
func (u *undo) keep(text string, at int) {
	u.open = false
	u.past = append(u.past, moment{text, at})
	u.bytes += len(text)
	for u.bytes > maxUndo && len(u.past) > 1 {
		u.bytes -= len(u.past[0].text)
		u.past = u.past[1:]
	}
}
