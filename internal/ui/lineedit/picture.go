package lineedit

import (
	"fmt"
	"strings"

	"coder/internal/core/chat"
)

// Picture is an image that stands in a draft as a marker.
type Picture struct {
	chat.Image
	// Name names the file that it was read from as a message does, @path; "" if there is none.
	Name string
}

// mark is a picture as a unit of a draft: its number is one that none of these has.
func mark(p *Picture, others []paste) paste {
	for n := 1; ; n++ {
		label := fmt.Sprintf("[Image #%d]", n)
		if !hasMark(others, label) {
			return paste{text: label, label: label, picture: p}
		}
	}
}

func hasMark(list []paste, label string) bool {
	for _, p := range list {
		if p.picture != nil && p.label == label {
			return true
		}
	}
	return false
}

// PutPicture puts a picture in at the cursor.
func (e *Editor) PutPicture(p *Picture) { e.Insert(Draft{string(firstPaste), []paste{mark(p, nil)}}) }

// Insert puts a draft in at the cursor.
func (e *Editor) Insert(d Draft) {
	e.leaveModes()
	e.last, e.goal = other, -1
	e.change(e.draft.adopt(d))
}

// Pictures are the pictures that stand in it, in order.
func (d Draft) Pictures() (all []chat.Image) {
	for _, r := range d.raw {
		if p, ok := d.paste(r); ok && p.picture != nil {
			all = append(all, p.picture.Image)
		}
	}
	return all
}

// Saved is the whole text to be kept on disk: with the name of its file for each picture.
func (d Draft) Saved() string {
	return d.expand(func(p paste) string {
		if p.picture != nil {
			return p.picture.Name
		}
		return p.text
	})
}

// Rewritten is a text as a draft, in which d's pictures stand where their markers do.
func (d Draft) Rewritten(text string) Draft {
	to := Folded(text, d.Pastes())
	for _, p := range d.only(d.raw).pastes {
		if p.picture != nil && strings.Contains(to.raw, p.label) {
			to.raw = strings.Replace(to.raw, p.label, string(to.keep(p)), 1)
		}
	}
	return to
}

// Then is d with what was typed behind it.
func (d Draft) Then(text string) Draft {
	var e Editor
	e.SetText(text)
	return joined(d, e.Draft())
}
