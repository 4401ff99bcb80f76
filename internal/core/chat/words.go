package chat

import (
	"slices"
	"strings"
	"unicode"
)

// Origin is the source of a piece of input. Only [OriginTyped] text can name hosts.
type Origin string

// The origins of a piece.
const (
	OriginUnknown  Origin = ""
	OriginTyped    Origin = "typed"    // on the command line, at a terminal, in a page, or by a driving program
	OriginPasted   Origin = "pasted"   // several lines at once
	OriginLine     Origin = "line"     // one line of a pipe used in place of a terminal
	OriginStdin    Origin = "stdin"    // everything read from a pipe
	OriginLinked   Origin = "linked"   // the name of a file added by an editor
	OriginAttached Origin = "attached" // the content of such a file
	OriginComposed Origin = "composed" // written by a program from other people's text
)

// TextPiece is a part of an input with one origin.
type TextPiece struct {
	Origin Origin
	Text   string
}

// UserText is an input as pieces, in order.
type UserText []TextPiece

// NewUserText returns text as words with origin o.
func NewUserText(o Origin, text string) UserText { return UserText{{o, text}} }

// Text returns the whole input.
func (w UserText) Text() string {
	var all strings.Builder
	for _, p := range w {
		all.WriteString(p.Text)
	}
	return all.String()
}

// CanBeCommand reports whether the input may be a command. Input that begins with text the user only passed
// on (such as a paste) may not.
func (w UserText) CanBeCommand() bool {
	w = w.Trim()
	return len(w) == 0 || w[0].Origin == OriginUnknown || w[0].Origin == OriginTyped || w[0].Origin == OriginLine
}

// MentionText returns the text in which file names count: everything except attached and composed pieces.
func (w UserText) MentionText() string {
	return w.textWithout(func(o Origin) bool { return o == OriginAttached || o == OriginComposed })
}

// TypedText returns the text in which names of files outside the workspace count: the typed pieces.
func (w UserText) TypedText() string {
	return w.textWithout(func(o Origin) bool { return o != OriginTyped })
}

// textWithout returns the text with a line end in place of each piece whose origin drop accepts.
func (w UserText) textWithout(drop func(Origin) bool) string {
	w = slices.Clone(w)
	for i, p := range w {
		if drop(p.Origin) {
			w[i].Text = "\n"
		}
	}
	return w.Text()
}

// Trim returns w without the white space around it.
func (w UserText) Trim() UserText {
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
