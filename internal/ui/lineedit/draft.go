package lineedit

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"coder/internal/core/chat"
)

// A paste of several lines is one character from the last private plane in a draft's text, so that
// moving, killing and undoing treat it as any character, at a cost independent of its length.
const (
	firstPaste = '\U00100000'
	lastPaste  = '\U0010FFFD'
)

// Draft is a text being written: typed and pasted text. The zero Draft is empty. A Draft is immutable
// and can be set in any [Editor].
type Draft struct {
	raw    string
	pastes []paste
}

// paste is a pasted text shown as one unit. The label is computed once because counting lines takes
// time.
type paste struct {
	text, label string
	image       *Picture // nil for a text
}

// Text returns the whole text to send, pastes in full.
func (d Draft) Text() string {
	return d.expand(func(p paste) string { return p.text })
}

// Words returns the text in pieces, typed and pasted.
func (d Draft) Words() (all chat.UserText) {
	from := 0
	for i, r := range d.raw {
		p, ok := d.findPaste(r)
		if !ok {
			continue
		}
		whole := chat.TextPiece{Origin: chat.OriginPasted, Text: p.text}
		if p.image != nil {
			whole.Origin = chat.OriginTyped
		}
		all = append(all, chat.TextPiece{Origin: chat.OriginTyped, Text: d.raw[from:i]}, whole)
		from = i + utf8.RuneLen(r)
	}
	return append(all, chat.TextPiece{Origin: chat.OriginTyped, Text: d.raw[from:]})
}

// String returns the text as shown while editing, each paste as its label.
func (d Draft) String() string { return d.expand(func(p paste) string { return p.label }) }

// IsEmpty reports whether the draft is empty.
func (d Draft) IsEmpty() bool { return d.raw == "" }

// Pastes returns the pastes shown as one unit.
func (d Draft) Pastes() (all []string) {
	for _, p := range d.withRaw(d.raw).pastes {
		if p.image == nil {
			all = append(all, p.text)
		}
	}
	return all
}

// NewDraft returns a draft of text. Each of pastes is a unit in the draft, as after the paste.
func NewDraft(text string, pastes []string) (d Draft) {
	d.raw = cleanTyped(text)
	for _, whole := range pastes {
		if whole = normalizeLineEnds(whole); whole == "" || !strings.Contains(d.raw, whole) {
			continue
		}
		if r := d.storePaste(newPaste(whole)); r >= 0 {
			d.raw = strings.ReplaceAll(d.raw, whole, string(r))
		}
	}
	return d
}

// Join joins drafts into one, each on a new line.
func Join(drafts ...Draft) (all Draft) {
	for i, d := range drafts {
		if i > 0 {
			all.raw += "\n"
		}
		all.raw += all.importPastes(d)
	}
	return all
}

func (d Draft) expand(show func(paste) string) string {
	if len(d.pastes) == 0 {
		return d.raw
	}
	var b strings.Builder
	for _, r := range d.raw {
		if p, ok := d.findPaste(r); ok {
			b.WriteString(show(p))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (d Draft) findPaste(r rune) (paste, bool) {
	if !isPasteRune(r) || int(r-firstPaste) >= len(d.pastes) {
		return paste{}, false
	}
	return d.pastes[r-firstPaste], true
}

func isPasteRune(r rune) bool { return r >= firstPaste && r <= lastPaste }

// memorySize estimates the memory that d uses.
func (d Draft) memorySize() (n int) {
	for _, p := range d.pastes {
		if n += len(p.text); p.image != nil {
			n += len(p.image.Data)
		}
	}
	return n + len(d.raw)
}

// withRaw returns d with raw as its text, without the pastes that raw does not contain.
func (d Draft) withRaw(raw string) Draft {
	var pastes []paste
	raw = strings.Map(func(r rune) rune {
		p, ok := d.findPaste(r)
		if !ok {
			return r
		}
		pastes = append(pastes, p)
		return firstPaste + rune(len(pastes)-1)
	}, raw)
	return Draft{raw: raw, pastes: pastes}
}

// importPastes makes other's pastes d's own and returns other's text in d's terms. A picture gets a
// number that none in d's text has.
func (d *Draft) importPastes(other Draft) string {
	here := d.withRaw(d.raw).pastes
	return strings.Map(func(r rune) rune {
		p, ok := other.findPaste(r)
		if !ok {
			return r
		}
		if p.image != nil && !slices.Contains(here, p) && hasLabel(here, p.label) {
			p = pictureMarker(p.image, here)
		}
		here = append(here, p)
		return d.storePaste(p)
	}, other.raw)
}

// storePaste stores a paste, unless already stored, and returns its character, or -1 if there are too many.
func (d *Draft) storePaste(p paste) rune {
	if i := slices.Index(d.pastes, p); i >= 0 {
		return firstPaste + rune(i)
	}
	if len(d.pastes) > lastPaste-firstPaste {
		return -1
	}
	d.pastes = append(d.pastes, p)
	return firstPaste + rune(len(d.pastes)-1)
}

func newPaste(text string) paste {
	n := countLines(text)
	if n == 1 {
		return paste{text: text, label: "[copy 1 line]"}
	}
	return paste{text: text, label: "[copy " + strconv.Itoa(n) + " lines]"}
}

// countLines counts lines; a final newline does not start another.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// cleanTyped makes s valid in a draft's text: valid UTF-8, LF line ends, and no character that represents a
// paste.
func cleanTyped(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	s = normalizeLineEnds(s)
	if strings.IndexFunc(s, isPasteRune) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isPasteRune(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// normalizeLineEnds converts CR LF and CR, which terminals send in pastes, to LF.
func normalizeLineEnds(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
