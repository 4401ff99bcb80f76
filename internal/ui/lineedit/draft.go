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
	picture     *Picture // nil for a text
}

// Text returns the whole text to send, pastes in full.
func (d Draft) Text() string {
	return d.expand(func(p paste) string { return p.text })
}

// Words returns the text in pieces, typed and pasted.
func (d Draft) Words() (all chat.Words) {
	from := 0
	for i, r := range d.raw {
		p, ok := d.paste(r)
		if !ok {
			continue
		}
		whole := chat.Piece{Origin: chat.Pasted, Text: p.text}
		if p.picture != nil {
			whole.Origin = chat.Typed
		}
		all = append(all, chat.Piece{Origin: chat.Typed, Text: d.raw[from:i]}, whole)
		from = i + utf8.RuneLen(r)
	}
	return append(all, chat.Piece{Origin: chat.Typed, Text: d.raw[from:]})
}

// String returns the text as shown while editing, each paste as its label.
func (d Draft) String() string { return d.expand(func(p paste) string { return p.label }) }

// Empty reports whether the draft is empty.
func (d Draft) Empty() bool { return d.raw == "" }

// Pastes returns the pastes shown as one unit.
func (d Draft) Pastes() (all []string) {
	for _, p := range d.only(d.raw).pastes {
		if p.picture == nil {
			all = append(all, p.text)
		}
	}
	return all
}

// Folded returns a draft of text in which pastes are units, as when they were pasted.
func Folded(text string, pastes []string) (d Draft) {
	d.raw = typed(text)
	for _, whole := range pastes {
		if whole = lineEnds(whole); whole == "" || !strings.Contains(d.raw, whole) {
			continue
		}
		if r := d.keep(pasted(whole)); r >= 0 {
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
		all.raw += all.adopt(d)
	}
	return all
}

func (d Draft) expand(show func(paste) string) string {
	if len(d.pastes) == 0 {
		return d.raw
	}
	var b strings.Builder
	for _, r := range d.raw {
		if p, ok := d.paste(r); ok {
			b.WriteString(show(p))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (d Draft) paste(r rune) (paste, bool) {
	if !standsForPaste(r) || int(r-firstPaste) >= len(d.pastes) {
		return paste{}, false
	}
	return d.pastes[r-firstPaste], true
}

func standsForPaste(r rune) bool { return r >= firstPaste && r <= lastPaste }

// bytes estimates the memory that d uses.
func (d Draft) bytes() (n int) {
	for _, p := range d.pastes {
		if n += len(p.text); p.picture != nil {
			n += len(p.picture.Data)
		}
	}
	return n + len(d.raw)
}

// only returns d with raw as its text, without the pastes that raw does not contain.
func (d Draft) only(raw string) Draft {
	var pastes []paste
	raw = strings.Map(func(r rune) rune {
		p, ok := d.paste(r)
		if !ok {
			return r
		}
		pastes = append(pastes, p)
		return firstPaste + rune(len(pastes)-1)
	}, raw)
	return Draft{raw: raw, pastes: pastes}
}

// adopt makes other's pastes d's own and returns other's text in d's terms. A picture gets a
// number that none in d's text has.
func (d *Draft) adopt(other Draft) string {
	here := d.only(d.raw).pastes
	return strings.Map(func(r rune) rune {
		p, ok := other.paste(r)
		if !ok {
			return r
		}
		if p.picture != nil && !slices.Contains(here, p) && hasMark(here, p.label) {
			p = mark(p.picture, here)
		}
		here = append(here, p)
		return d.keep(p)
	}, other.raw)
}

// keep stores a paste, unless already stored, and returns its character, or -1 if there are too many.
func (d *Draft) keep(p paste) rune {
	if i := slices.Index(d.pastes, p); i >= 0 {
		return firstPaste + rune(i)
	}
	if len(d.pastes) > lastPaste-firstPaste {
		return -1
	}
	d.pastes = append(d.pastes, p)
	return firstPaste + rune(len(d.pastes)-1)
}

func pasted(text string) paste {
	n := lines(text)
	if n == 1 {
		return paste{text: text, label: "[copy 1 line]"}
	}
	return paste{text: text, label: "[copy " + strconv.Itoa(n) + " lines]"}
}

// lines counts lines; a final newline does not start another.
func lines(s string) int {
	n := strings.Count(s, "\n")
	if !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// typed makes s valid in a draft's text: valid UTF-8, LF line ends, and no character that represents a
// paste.
func typed(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	s = lineEnds(s)
	if strings.IndexFunc(s, standsForPaste) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if standsForPaste(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// lineEnds converts CR LF and CR, which terminals send in pastes, to LF.
func lineEnds(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
