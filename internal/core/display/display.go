// Package display names the few shapes of thing a person can be shown. Tools,
// commands and questions speak in these; a renderer that can draw them can draw
// everything that does, including what is not yet written.
package display

// A Block is one of [Text], [Code], [Diff], [Table], [Checklist] or [Shell].
// Blocks are bounded in size by whoever makes them, and are not yet cleaned for
// a terminal.
type Block interface{ isBlock() }

// Markdown is the language of a [Code] that is prose of a model: it is read rather than
// shown to the letter.
const Markdown = "markdown"

type (
	// Text is plain prose, a sentence a line.
	Text string
	// Code is source in a language, such as a shell command.
	Code struct{ Lang, Source string }
	// Diff is a unified diff of one or more files.
	Diff struct {
		Unified        string
		Added, Deleted int
		More           int // lines that were left out at its end
	}
	// Table has a header row, unless that is empty, and cells; renderers may
	// cut columns to fit.
	Table struct {
		Head []Cell
		Rows [][]Cell
		// First, if it is not zero, is how wide the first column is. What
		// stands beside a cell that is wider goes on the next line.
		First int
	}
	// Checklist is what is to be done.
	Checklist []Check
	// End is the last lines of an output that was cut, which it is, and how many it had in
	// all; 0 if nobody knows.
	End struct {
		From string `json:"from,omitempty"` // stdout or stderr
		Of   int    `json:"of"`
		Text string `json:"text"`
	}

	// Shell is a command that was run, and what came of it.
	Shell struct {
		Command   string `json:"command"`
		Ran       bool   `json:"ran"` // else Error says why not, and the rest is nothing
		Exit      int    `json:"exit"`
		Millis    int64  `json:"durationMs"`
		Truncated bool   `json:"truncated,omitempty"` // the output is not whole
		Stdout    string `json:"stdout,omitempty"`
		Stderr    string `json:"stderr,omitempty"`
		Error     string `json:"error,omitempty"`    // why it was not run, or was ended
		Terminal  bool   `json:"terminal,omitempty"` // it had the terminal: nobody but the person saw what it wrote
		Ends      []End  `json:"ends,omitempty"`     // of output that was cut
		Log       string `json:"log,omitempty"`      // the file that has all of it, if one has
	}
)

// Check is one point of a [Checklist].
type Check struct {
	State State  `json:"state"`
	Text  string `json:"text"`
}

// State is how far a point of a [Checklist] is.
type State string

// The states.
const (
	Pending    State = "pending"
	InProgress State = "in_progress"
	Completed  State = "completed"
)

// Cell is a field of a [Table]: data, or Words of the program's own, which are
// English and may be translated.
type Cell struct {
	Text  string
	Words bool
}

// Words are cells that say something.
func Words(texts ...string) []Cell { return cells(texts, true) }

// Data are cells that stay as they are.
func Data(texts ...string) []Cell { return cells(texts, false) }

func cells(texts []string, words bool) []Cell {
	row := make([]Cell, len(texts))
	for i, text := range texts {
		row[i] = Cell{text, words}
	}
	return row
}

func (Text) isBlock()      {}
func (Code) isBlock()      {}
func (Diff) isBlock()      {}
func (Table) isBlock()     {}
func (Checklist) isBlock() {}
func (Shell) isBlock()     {}
