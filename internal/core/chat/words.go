package chat

import (
	"slices"
	"strings"
	"unicode"
)

// Origin is where a piece of an input came from. Only what is [Typed] names hosts.
type Origin string

// The origins of a piece.
const (
	Unknown  Origin = ""
	Typed    Origin = "typed"    // on the command line, at a terminal, in a page, or by a program that drives
	Pasted   Origin = "pasted"   // several lines at once
	Line     Origin = "line"     // one line of a pipe that stands in for a terminal
	Stdin    Origin = "stdin"    // all that came through a pipe
	Linked   Origin = "linked"   // the name of a file that an editor added
	Attached Origin = "attached" // the content of one
	Composed Origin = "composed" // by a program, of words of others
)

// Piece is a part of an input that came from one place.
type Piece struct {
	Origin Origin
	Text   string
}

// Words are an input in pieces, in order.
type Words []Piece

// From returns words that came from one place.
func From(o Origin, text string) Words { return Words{{o, text}} }

// Text is the whole input.
func (w Words) Text() string {
	var all strings.Builder
	for _, p := range w {
		all.WriteString(p.Text)
	}
	return all.String()
}

// Commands reports whether the input may be a command: it does not begin with what
// the person only passed on.
func (w Words) Commands() bool {
	w = w.Trim()
	return len(w) == 0 || w[0].Origin == Unknown || w[0].Origin == Typed || w[0].Origin == Line
}

// Naming is the text in which names of files count: all but what others wrote.
func (w Words) Naming() string {
	return w.without(func(o Origin) bool { return o == Attached || o == Composed })
}

// Own is the text in which names of files count that are outside the workspace: what was typed.
func (w Words) Own() string { return w.without(func(o Origin) bool { return o != Typed }) }

// without is the text with a line end in the place of each piece that drop names.
func (w Words) without(drop func(Origin) bool) string {
	w = slices.Clone(w)
	for i, p := range w {
		if drop(p.Origin) {
			w[i].Text = "\n"
		}
	}
	return w.Text()
}

// Trim is w without the space around it.
func (w Words) Trim() Words {
	w = slices.Clone(w)
	for len(w) > 0 {
		if w[0].Text = strings.TrimLeftFunc(w[0].Text, unicode.IsSpace); w[0].Text != "" {
			break
		}
		w = w[1:]
	}
	for last := len(w) - 1; last >= 0; last-- {
		if w[last].Text = strings.TrimRightFunc(w[last].Text, unicode.IsSpace); w[last].Text != "" {
			break
		}
		w = w[:last]
	}
	return w
}
