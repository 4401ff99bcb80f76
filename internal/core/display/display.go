// Package display defines the kinds of content that coder can show. Tools, commands and questions use
// these kinds, so a renderer that draws them also supports tools that do not exist yet.
package display

// A Block is one of [Text], [Code], [Diff], [Table], [Checklist] or [Shell]. The creator of a block
// limits its size. Blocks are not yet sanitized for a terminal.
type Block interface{ isBlock() }

// LangMarkdown is the language of a [Code] block with prose of a model, which renderers format rather than
// show verbatim.
const LangMarkdown = "markdown"

type (
	// Text is plain prose, one sentence per line.
	Text string
	// Code is source in a language, such as a shell command.
	Code struct{ Lang, Source string }
	// Diff is a unified diff of one or more files.
	Diff struct {
		Unified        string
		Added, Deleted int
		OmittedLines   int // number of lines omitted at its end
	}
	// Table has an optional header row and cells. Renderers may cut columns to fit.
	Table struct {
		Header []Cell
		Rows   [][]Cell
		// FirstWidth, if not zero, is the width of the first column. If a cell is wider, the rest of its row goes on
		// the next line.
		FirstWidth int
	}
	// Checklist is a list of todos.
	Checklist []Check
	// OutputTail holds the last lines of a truncated output, the output's name, and its total number of lines, or 0
	// if unknown.
	OutputTail struct {
		Stream     string `json:"from,omitempty"` // stdout or stderr
		TotalLines int    `json:"of"`
		Text       string `json:"text"`
	}

	// Shell is a command and its result.
	Shell struct {
		Command      string       `json:"command"`
		HasRun       bool         `json:"ran"` // if false, only Error is set
		ExitCode     int          `json:"exit"`
		DurationMs   int64        `json:"durationMs"`
		Truncated    bool         `json:"truncated,omitempty"` // the output is incomplete
		Stdout       string       `json:"stdout,omitempty"`
		Stderr       string       `json:"stderr,omitempty"`
		Error        string       `json:"error,omitempty"`    // why the command did not run or was stopped
		UsedTerminal bool         `json:"terminal,omitempty"` // it used the terminal, so its output was not captured
		Tails        []OutputTail `json:"ends,omitempty"`     // ends of truncated outputs
		LogPath      string       `json:"log,omitempty"`      // the file with the full output, if there is one
	}
)

// Check is one item of a [Checklist].
type Check struct {
	State State  `json:"state"`
	Text  string `json:"text"`
}

// State is the progress of a [Checklist] item.
type State string

// The states.
const (
	StatePending    State = "pending"
	StateInProgress State = "in_progress"
	StateCompleted  State = "completed"
)

// Cell is a field of a [Table]: data, or coder's own English Words, which may be translated.
type Cell struct {
	Text  string
	Words bool
}

// TextCells returns cells with translatable text.
func TextCells(texts ...string) []Cell { return newCells(texts, true) }

// DataCells returns cells that are never translated.
func DataCells(texts ...string) []Cell { return newCells(texts, false) }

func newCells(texts []string, words bool) []Cell {
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
