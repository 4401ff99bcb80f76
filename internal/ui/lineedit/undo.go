package lineedit

// maxUndo is the most bytes of text kept for undo.
const maxUndo = 8 << 20

// undoStack saves the draft's text before each step. The zero value is empty.
type undoStack struct {
	snapshots []snapshot
	bytes     int
	typingRun bool // the newest step is a run of typing that continues
}

type snapshot struct {
	text   string
	cursor int
}

// save saves a text before it changes.
func (u *undoStack) save(text string, at int) {
	u.typingRun = false
	u.snapshots = append(u.snapshots, snapshot{text, at})
	u.bytes += len(text)
	for u.bytes > maxUndo && len(u.snapshots) > 1 {
		u.bytes -= len(u.snapshots[0].text)
		u.snapshots = u.snapshots[1:]
	}
}
