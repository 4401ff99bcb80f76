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

// pictureMarker is a picture as a unit of a draft: its number is one that none of these has.
func pictureMarker(p *Picture, others []paste) paste {
	for n := 1; ; n++ {
		label := fmt.Sprintf("[Image #%d]", n)
		if !hasLabel(others, label) {
			return paste{text: label, label: label, image: p}
		}
	}
}

func hasLabel(list []paste, label string) bool {
	for _, p := range list {
		if p.image != nil && p.label == label {
			return true
		}
	}
	return false
}

// InsertPicture puts a picture in at the cursor.
func (e *Editor) InsertPicture(p *Picture) {
	e.Insert(Draft{string(firstPaste), []paste{pictureMarker(p, nil)}})
}

// Insert puts a draft in at the cursor.
func (e *Editor) Insert(d Draft) {
	e.closeModes()
	e.lastKind, e.goalColumn = keyOther, -1
	e.insertStep(e.draft.importPastes(d))
}

// Pictures are the pictures that stand in it, in order.
func (d Draft) Pictures() (all []chat.Image) {
	for _, r := range d.raw {
		if p, ok := d.findPaste(r); ok && p.image != nil {
			all = append(all, p.image.Image)
		}
	}
	return all
}

// DiskText is the whole text to be kept on disk: with the name of its file for each picture.
func (d Draft) DiskText() string {
	return d.expand(func(p paste) string {
		if p.image != nil {
			return p.image.Name
		}
		return p.text
	})
}

// WithText is a text as a draft, in which d's pictures stand where their markers do.
func (d Draft) WithText(text string) Draft {
	to := NewDraft(text, d.Pastes())
	for _, p := range d.withRaw(d.raw).pastes {
		if p.image != nil && strings.Contains(to.raw, p.label) {
			to.raw = strings.Replace(to.raw, p.label, string(to.storePaste(p)), 1)
		}
	}
	return to
}

// WithSuffix is d with what was typed behind it.
func (d Draft) WithSuffix(text string) Draft {
	var e Editor
	e.SetText(text)
	return joinKills(d, e.Draft())
}
