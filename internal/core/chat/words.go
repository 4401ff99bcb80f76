package chat

import (
	"slices"
	"strings"
	"unicode"
)

// Origin is the source of a piece of input. Only [Typed] text can name hosts.
type Origin string

// The origins of a piece.
const (
	Unknown  Origin = ""
	Typed    Origin = "typed"    // on the command line, at a terminal, in a page, or by a driving program
	Pasted   Origin = "pasted"   // several lines at once
	Line     Origin = "line"     // one line of a pipe used in place of a terminal
	Stdin    Origin = "stdin"    // everything read from a pipe
	Linked   Origin = "linked"   // the name of a file added by an editor
	Attached Origin = "attached" // the content of such a file
	Composed Origin = "composed" // written by a program from other people's text
)

// Piece is a part of an input with one origin.
type Piece struct {
	Origin Origin
	Text   string
}

// Words is an input as pieces, in order.
type Words []Piece

// From returns text as words with origin o.
func From(o Origin, text string) Words { return Words{{o, text}} }

// Text returns the whole input.
func (w Words) Text() string {
	var all strings.Builder
	for _, p := range w {
		all.WriteString(p.Text)
	}
	return all.String()
}

// Commands reports whether the input may be a command. Input that begins with text the user only passed
// on (such as a paste) may not.
func (w Words) Commands() bool {
	w = w.Trim()
	return len(w) == 0 || w[0].Origin == Unknown || w[0].Origin == Typed || w[0].Origin == Line
}

// Naming returns the text in which file names count: everything except attached and composed pieces.
func (w Words) Naming() string {
	return w.without(func(o Origin) bool { return o == Attached || o == Composed })
}

// Own returns the text in which names of files outside the workspace count: the typed pieces.
func (w Words) Own() string { return w.without(func(o Origin) bool { return o != Typed }) }

// without returns the text with a line end in place of each piece whose origin drop accepts.
func (w Words) without(drop func(Origin) bool) string {
	w = slices.Clone(w)
	for i, p := range w {
		if drop(p.Origin) {
			w[i].Text = "\n"
		}
	}
	return w.Text()
}

// Trim returns w without the white space around it.
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
