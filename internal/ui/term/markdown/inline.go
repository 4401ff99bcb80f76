package markdown

import (
	"html"
	"strings"
	"unicode"

	"coder/internal/ui/term/ink"
)

// inlineSigns lists the bytes that may begin an inline element.
const inlineSigns = "*_`[\\~&<!h"

// maxDepth is the deepest nesting of spans.
const maxDepth = 4

// drawInline draws what is certain of the rest of the line.
func (s *Stream) drawInline(whole bool) {
	if s.KeepMarks {
		s.wrap.Write(s.style, s.line)
		s.line = ""
		return
	}
	in := inliner{put: s.wrap.Write, complete: whole}
	n := in.parse(s.line, s.prev, s.style, 0)
	if n > 0 {
		s.prev = s.line[n-1]
	}
	s.line = s.line[n:]
}

// inliner parses text within a line.
type inliner struct {
	put      ink.SpanFunc
	complete bool // the line is complete
}

// parse draws text, which follows prev, and returns how much of it is finished.
func (in inliner) parse(text string, prev byte, l ink.Style, depth int) int {
	i := 0
	for i < len(text) {
		next := nextSign(text[i:])
		if next < 0 || depth >= maxDepth {
			in.put(l, text[i:])
			return len(text)
		}
		in.put(l, text[i:i+next])
		i += next
		if i > 0 {
			prev = text[i-1]
		}
		n := in.parseSign(text[i:], prev, l, depth)
		if n == 0 {
			return i // wait for more
		}
		i += n
		prev = text[i-1]
	}
	return i
}

// nextSign returns the index of the next sign in text, or -1.
func nextSign(text string) int {
	for from := 0; ; {
		i := strings.IndexAny(text[from:], inlineSigns)
		if i < 0 {
			return -1
		}
		if i += from; text[i] != 'h' || strings.HasPrefix(text[i:], "http") || strings.HasPrefix("http", text[i:]) {
			return i
		}
		from = i + 1
	}
}

// parseSign draws the element that starts at the sign and returns its length, or 0 if it is not certain yet.
func (in inliner) parseSign(text string, prev byte, l ink.Style, depth int) int {
	switch text[0] {
	case '\\':
		if len(text) == 1 {
			if in.complete {
				return in.drawLiteral(text, 1, l)
			}
			return 0
		}
		if !isPunctuation(text[1]) {
			return in.drawLiteral(text, 1, l)
		}
		in.put(l, text[1:2])
		return 2
	case '`':
		// It ends with as many ticks as it began with
		n, sure := in.openingRun(text)
		if !sure {
			return 0
		}
		end, sure := in.findRun(text, n, '`', func(int, int) bool { return true })
		switch {
		case !sure:
			return 0
		case end < 0:
			return in.drawLiteral(text, n, l)
		}
		code := text[n:end]
		if len(code) > 2 && code[0] == ' ' && code[len(code)-1] == ' ' {
			code = code[1 : len(code)-1]
		}
		l.Role = ink.Code
		in.put(l, code)
		return end + n
	case '[':
		return in.parseLink(text, prev, l, depth)
	case '&':
		return in.parseEntity(text, l)
	case '!': // a picture
		end := -1
		if len(text) > 1 && text[1] == '[' {
			_, end = linkParts(searchWindow(text[1:]))
		}
		switch {
		case end > 0:
			return 1 + in.parseLink(text[1:], ' ', l, depth)
		case (end == 0 || len(text) == 1) && in.mayContinue(text):
			return 0
		}
		return in.drawLiteral(text, 1, l)
	case '<':
		return in.parseAddress(text, 1, l)
	case 'h':
		if isAlnum(prev) || l.Link != "" {
			return in.drawLiteral(text, 1, l)
		}
		return in.parseAddress(text, 0, l)
	}
	n, sure := in.openingRun(text)
	if !sure {
		return 0
	}
	under := text[0] == '_' // names such as __init__, _x_y and f_(a) are text
	if n > 3 || text[0] == '~' && n != 2 || n == len(text) || isSpace(text[n]) || (n == 1 || under) && isAlnum(prev) || under && n > 2 {
		return in.drawLiteral(text, n, l)
	}
	end, sure := in.findRun(text, n, text[0], func(from, to int) bool {
		switch {
		case isSpace(text[from-1]), under && n == 2 && !strings.Contains(text[n:from], " "):
			return false
		case to == len(text):
			return true
		}
		return n > 1 && !under || !isAlnum(text[to]) && (!under || text[to] != '(' && text[to] != '/')
	})
	switch {
	case !sure:
		return 0
	case end < 0:
		return in.drawLiteral(text, n, l)
	}
	inner := inliner{put: in.put, complete: true}
	inner.parse(text[n:end], text[0], emphasize(l, text[0], n), depth+1)
	return end + n
}

// drawLiteral draws the first n bytes unchanged.
func (in inliner) drawLiteral(text string, n int, l ink.Style) int {
	in.put(l, text[:n])
	return n
}

// maxEntity is the longest name of a character.
const maxEntity = 32

// parseEntity parses a character written by name or number, such as &lt;. An invisible character stays as
// typed.
func (in inliner) parseEntity(text string, l ink.Style) int {
	n := 1
	for n < len(text) && n <= maxEntity && (isAlnum(text[n]) || text[n] == '#') {
		n++
	}
	switch {
	case n == len(text) && n <= maxEntity && !in.complete:
		return 0
	case n == len(text) || text[n] != ';':
		return in.drawLiteral(text, 1, l)
	}
	n++
	shown := strings.ReplaceAll(html.UnescapeString(text[:n]), "\u00a0", " ")
	if shown == text[:n] || strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return in.drawLiteral(text, 1, l)
	}
	in.put(l, shown)
	return n
}

// mayContinue reports whether more of text may come and be examined.
func (in inliner) mayContinue(text string) bool { return !in.complete && len(text) < maxSpanBytes }

// searchWindow returns the part of text that is examined for the end of a span.
func searchWindow(text string) string { return text[:min(len(text), maxSpanBytes)] }

func isPunctuation(c byte) bool { return c > ' ' && c < 0x7f && !isAlnum(c) }

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// maxSearches is how often the end of code is searched for within one span.
const maxSearches = 4

// maxRun is the longest run of equal signs treated as one.
const maxRun = 32

// openingRun returns the length of the run of signs at the start of text; sure is false while the run may
// grow.
func (in inliner) openingRun(text string) (n int, sure bool) {
	n = min(runLength(text), maxRun)
	return n, n < len(text) || n == maxRun || in.complete
}

// findRun returns where, after the first n bytes, a run of exactly n signs begins that ends may accept; -1
// if none. sure is false while more text could change the answer. A run at the edge of the window does
// not count, since its length is unknown.
func (in inliner) findRun(text string, n int, sign byte, ends func(from, to int) bool) (at int, sure bool) {
	seen, tries := searchWindow(text), maxSearches
	for i := n; i < len(seen); {
		switch c := seen[i]; {
		case c == '\\' && sign != '`':
			i += 2
		case c != sign && c != '`':
			i++
		case c != sign && tries == 0:
			i++
		case c != sign:
			to := skipCode(seen, i)
			tries--
			if to < 0 && in.mayContinue(text) {
				return -1, false
			}
			i = max(to, i+runLength(seen[i:]))
		default:
			to := i + runLength(seen[i:])
			if to == len(seen) && (in.mayContinue(text) || to == maxSpanBytes) {
				return -1, !in.mayContinue(text)
			}
			if to-i == n && i > n && ends(i, to) {
				return i, true
			}
			i = to
		}
	}
	return -1, !in.mayContinue(text)
}

// skipCode returns the end of the code that begins at i, or -1 if there is none.
func skipCode(text string, i int) int {
	n := runLength(text[i:])
	for i += n; i < len(text); {
		if text[i] != '`' {
			i++
			continue
		}
		to := i + runLength(text[i:])
		if to-i == n && to < len(text) {
			return to
		}
		i = to
	}
	return -1
}

func emphasize(l ink.Style, sign byte, n int) ink.Style {
	switch {
	case sign == '~':
		l.Strike = true
	case n == 1:
		l.Italic = true
	case n == 2:
		l.Bold = true
	default:
		l.Bold, l.Italic = true, true
	}
	return l
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// parseLink parses [text](address).
func (in inliner) parseLink(text string, prev byte, l ink.Style, depth int) int {
	if isAlnum(prev) || prev == ']' {
		return in.drawLiteral(text, 1, l)
	}
	middle, end := linkParts(searchWindow(text))
	switch {
	case end < 0:
		return in.drawLiteral(text, 1, l)
	case end == 0 && in.mayContinue(text):
		return 0
	case end == 0:
		return in.drawLiteral(text, 1, l)
	}
	label, address := text[1:middle], linkDestination(text[middle+2:end-1])
	if strings.HasPrefix(label, "![") { // a picture that is a link
		label, _, _ = strings.Cut(label[2:], "]")
	}
	inner := inliner{put: in.put, complete: true}
	shown, shownAddress := l, ink.Style{Role: ink.Link}
	shown.Underline = true
	if isClickable(address) {
		shown.Link, shownAddress.Link = address, address
	}
	inner.parse(label, '[', shown, depth+1)
	if address != "" && address != label && address != "mailto:"+label {
		in.put(l, " (")
		in.put(shownAddress, address)
		in.put(l, ")")
	}
	return end
}

// parseAddress parses a bare address, or one in angle brackets.
func (in inliner) parseAddress(text string, angle int, l ink.Style) int {
	address := searchWindow(text)[angle:]
	for _, kind := range []string{"https://", "http://"} {
		n := min(len(address), len(kind))
		switch {
		case address[:n] != kind[:n]:
			continue
		case n < len(kind) && in.mayContinue(text):
			return 0
		case n < len(kind):
			continue
		}
		end := len(address) - len(strings.TrimLeft(address, addressRunes))
		switch {
		case end < len(address):
		case in.mayContinue(text):
			return 0
		case len(text) > len(address)+angle: // its length is unknown
			return in.drawLiteral(text, 1, l)
		}
		if angle > 0 {
			if end == len(address) || address[end] != '>' {
				break
			}
			address = address[:end]
		} else {
			address = strings.TrimRight(address[:end], ".,;:!?'*~")
			for strings.HasSuffix(address, ")") && strings.Count(address, "(") < strings.Count(address, ")") {
				address = strings.TrimRight(strings.TrimSuffix(address, ")"), ".,;:!?'*~")
			}
		}
		if len(address) == len(kind) {
			break
		}
		l.Link = address
		in.put(l, address)
		return len(address) + 2*angle
	}
	return in.drawLiteral(text, 1, l)
}

// addressRunes are the characters of addresses.
const addressRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?#[]@!$&'()*+,;=%"

// isClickable reports whether an address may be clickable: a complete web or mail address in plain letters.
func isClickable(address string) bool {
	for _, kind := range []string{"https://", "http://", "mailto:"} {
		if strings.HasPrefix(strings.ToLower(address), kind) {
			return len(address) < 2000 && strings.Trim(address, addressRunes) == ""
		}
	}
	return false
}

// linkDestination returns the address of a link, without a title after it.
func linkDestination(inside string) string {
	inside = strings.TrimSpace(inside)
	address, title, _ := strings.Cut(inside, " ")
	if title = strings.TrimSpace(title); len(title) > 1 && strings.Contains(`""  ''  ()`, title[:1]+title[len(title)-1:]) {
		inside = address
	}
	if strings.HasPrefix(inside, "<") && strings.HasSuffix(inside, ">") {
		inside = inside[1 : len(inside)-1]
	}
	return inside
}

// linkParts returns the ends of the label and of the link; end is 0 if it has not arrived, and negative
// if this is not a link.
func linkParts(text string) (middle, end int) {
	middle = 1 + strings.IndexAny(text[1:], "[]")
	if text == "[![" {
		return 0, 0
	}
	if strings.HasPrefix(text, "[![") && text[len("[![")] != '!' {
		_, picture := linkParts(text[2:])
		if middle = 2 + picture; picture <= 0 || middle >= len(text)-1 {
			return 0, min(picture, 0)
		}
	}
	switch {
	case middle == 0, middle == len(text)-1 && text[middle] == ']':
		return 0, 0
	case text[middle] == '[' || middle == 1 || text[middle+1] != '(':
		return 0, -1
	}
	depth := 0
	for i := middle + 1; i < len(text); i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return middle, i + 1
		}
	}
	return middle, 0
}
