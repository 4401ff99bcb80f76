// Package display names the few shapes of thing a person can be shown. Tools and
// questions speak in these; a renderer that can draw them can draw every tool,
// including those not yet written.
package display

// A Block is one of [Text], [Code], [Diff] or [Table]. Blocks are bounded in
// size by whoever makes them, and are not yet cleaned for a terminal.
type Block interface{ isBlock() }

type (
	// Text is plain prose.
	Text string
	// Code is source in a language, such as a shell command.
	Code struct{ Lang, Source string }
	// Diff is a unified diff of one or more files.
	Diff struct {
		Unified        string
		Added, Deleted int
	}
	// Table has a header row and cells; renderers may cut columns to fit.
	Table struct {
		Head []string
		Rows [][]string
	}
)

func (Text) isBlock()  {}
func (Code) isBlock()  {}
func (Diff) isBlock()  {}
func (Table) isBlock() {}
