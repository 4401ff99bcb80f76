package markdown

import (
	"strings"
	"unicode/utf8"

	"coder/internal/ui/term/ink"
)

// lineKind is the kind of a line, determined by its beginning.
type lineKind uint8

const (
	lineUnsure lineKind = iota
	lineBlank
	lineProse
	lineHeading
	lineQuote
	lineBullet
	lineRule
	lineFence // of a block of code
	lineRow   // possibly of a table
)

// startLine draws the first n bytes of the line unchanged and continues inline.
func (s *Stream) startLine(n int, l ink.Style, whole bool) {
	head := strings.ReplaceAll(s.line[:n], "\t", "    ")
	s.wrap = ink.Wrap{Put: s.draw, Indent: ink.Width(head)}
	if s.Width != nil {
		s.wrap.Width = s.Width()
	}
	s.wrap.WriteFixed(l, head)
	if n > 0 {
		s.prev = s.line[n-1]
	}
	s.line, s.started = s.line[n:], true
	s.drawInline(whole)
}

// codeIndent is the indent of code without a fence.
const codeIndent = 4

// isCode reports whether the begun line is indented code: after other indented code, or after a blank
// line. Text that looks like an item, quote, row or fence is one, unless the line before was code.
func (s *Stream) isCode() bool {
	text := strings.TrimLeft(s.line, " \t")
	blanks := s.line[:len(s.line)-len(text)]
	if text == "" || len(blanks) > maxHeadBytes || ink.Width(strings.ReplaceAll(blanks, "\t", "    ")) < s.itemColumn+
		codeIndent {
		return false
	}
	return s.inCode || (s.pendingNewlines > 1 || !s.hasOutput) && len(s.table.rows) == 0 && !strings.Contains("-*+>|`~0123456789", text[:1])
}

// recordPosition records the position of a line with a known kind: later lines may belong to it, or to the item
// before.
func (s *Stream) recordPosition(k lineKind, n int) {
	if k == lineBlank {
		return
	}
	s.inCode = false
	head := s.line[:len(s.line)-len(strings.TrimLeft(s.line, " \t"))]
	if k == lineBullet {
		head = s.line[:n]
		if strings.HasSuffix(head, "] ") { // its continuation is below its box
			head = head[:len(head)-boxBytes]
		}
	}
	if column := ink.Width(strings.ReplaceAll(head, "\t", "    ")); k == lineBullet || column < s.itemColumn && s.pendingNewlines > 1 {
		s.itemColumn = column
	}
}

// classify returns a line's kind, and how much of its beginning stays unchanged.
func classify(line string, whole bool) (lineKind, int) {
	text := strings.TrimLeft(line, " \t")
	indent := len(line) - len(text)
	k, n := lineUnsure, 0
	switch {
	case text == "" && whole:
		return lineBlank, 0
	case text == "":
	case text[0] == '|':
		if len(line) > maxRowBytes {
			return lineProse, 0
		}
		return lineRow, indent
	default:
		k, n = classifyText(text, whole)
	}
	if k == lineUnsure && (whole || len(line) > maxHeadBytes) {
		k, n = lineProse, 0
	}
	return k, indent + n
}

func classifyText(text string, whole bool) (lineKind, int) {
	switch text[0] {
	case '#':
		n := runLength(text)
		switch {
		case n > 6:
			return lineProse, 0
		case n == len(text):
			return lineUnsure, 0
		case text[n] == ' ' || text[n] == '\t':
			return lineHeading, n + 1
		}
		return lineProse, 0
	case '`', '~':
		n := runLength(text)
		switch {
		case n == len(text) && n < 3 && !whole:
			return lineUnsure, 0
		case n < 3 || text[0] == '`' && strings.Contains(text[n:], "`") || len(text) > maxHeadBytes:
			return lineProse, 0
		case !whole:
			return lineUnsure, 0
		}
		return lineFence, 0
	case '>':
		n := len(text) - len(strings.TrimLeft(text, "> \t"))
		if n == len(text) && !whole {
			return lineUnsure, 0
		}
		if strings.HasPrefix(text[n:], "|") && len(text) <= maxRowBytes {
			return lineRow, n
		}
		if code := text[n:]; code != "" && (code[0] == '`' || code[0] == '~') {
			switch k, _ := classifyText(code, whole); k {
			case lineUnsure:
				return lineUnsure, 0
			case lineFence:
				return lineFence, n
			}
		}
		item, sure := itemMarker(text[n:])
		if !sure && !whole && n < maxHeadBytes/2 {
			return lineUnsure, 0
		}
		return lineQuote, n + item
	case '-', '*', '_', '+':
		sign := text[:1]
		if strings.Trim(text, sign+" ") == "" {
			switch {
			case !whole:
				return lineUnsure, 0
			case strings.Count(text, sign) >= 3 && sign != "+" && len(text) <= maxHeadBytes:
				return lineRule, 0
			}
		}
		if len(text) > 1 && text[1] == ' ' && sign != "_" {
			return classifyItem(text, 2, whole)
		}
		return lineProse, 0
	}
	if text[0] == ':' || text[0] == '[' {
		return classifyNote(text, whole)
	}
	switch n, sure := otherBullet(text); {
	case n > 0:
		return lineBullet, n
	case !sure && !whole:
		return lineUnsure, 0
	}
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	switch rest := text[digits:]; {
	case digits == 0 || digits > maxDigits || len(rest) > 1 && (rest[0] != '.' && rest[0] != ')' || rest[1] != ' '):
		return lineProse, 0
	case len(rest) > 1:
		return classifyItem(text, digits+2, whole)
	case whole || rest != "" && rest != "." && rest != ")":
		return lineProse, 0
	}
	return lineUnsure, 0
}

// classifyItem classifies an item whose sign has n bytes, and its box, if any: - [x] done.
func classifyItem(text string, n int, whole bool) (lineKind, int) {
	rest := text[n:]
	for _, box := range []string{"[ ] ", "[x] ", "[X] "} {
		switch {
		case strings.HasPrefix(rest, box):
			return lineBullet, n + boxBytes
		case rest != "" && strings.HasPrefix(box, rest) && !whole:
			return lineUnsure, 0
		}
	}
	return lineBullet, n
}

const boxBytes = len("[ ] ")

// otherBullets are the bullets that people use besides Markdown's own, and numerals the Chinese digits.
const (
	otherBullets = "•◦▪‣●○■□"
	numerals     = "一二三四五六七八九十0123456789"
)

// otherBullet returns the length of an item's sign that is not Markdown: • a, 1、a, （1）a, 一、a. It is 0 if
// there is none, which is not sure while more may come.
func otherBullet(text string) (n int, sure bool) {
	first, size := utf8.DecodeRuneInString(text)
	if strings.ContainsRune(otherBullets, first) {
		if rest := text[size:]; rest == "" || rest[0] != ' ' {
			return 0, rest != ""
		}
		return size + 1, true
	}
	number, end := text, '、'
	if first == '（' {
		number, end = text[size:], '）'
	}
	rest := strings.TrimLeft(number, numerals)
	next, nextSize := utf8.DecodeRuneInString(rest)
	switch counted := len(number) - len(rest); {
	case counted > maxNumber, counted == 0 && (rest != "" || first != '（'):
		return 0, true
	case rest == "":
		return 0, false
	case next == end && counted > 0:
		return len(text) - len(rest) + nextSize, true
	}
	return 0, true
}

// maxNumber is the longest number in such a sign, in bytes.
const maxNumber = 9

// classifyNote distinguishes a footnote, [^1]: text, and a definition, : text, from prose.
func classifyNote(text string, whole bool) (lineKind, int) {
	if text[0] == ':' {
		switch {
		case len(text) == 1 && !whole:
			return lineUnsure, 0
		case len(text) > 1 && text[1] == ' ':
			return lineBullet, 2
		}
		return lineProse, 0
	}
	name, words, named := strings.Cut(text, "]: ")
	switch {
	case named && strings.HasPrefix(name, "[^") && len(name) <= maxNoteName && !strings.Contains(name, "]"):
		return lineBullet, len(text) - len(words)
	case whole || named || len(text) > maxNoteName+len("]:") || len(text) > 1 && text[1] != '^':
		return lineProse, 0
	}
	if i := strings.IndexByte(text, ']'); i >= 0 && i+1 < len(text) && text[i+1:] != ":" {
		return lineProse, 0
	}
	return lineUnsure, 0
}

// maxNoteName is the longest name of a footnote.
const maxNoteName = 32

// itemMarker returns the length of a list item's sign; 0 if text begins none, which is not sure while more
// may come.
func itemMarker(text string) (n int, sure bool) {
	if text != "" && strings.Contains("-*+", text[:1]) {
		n = 1
	} else if n = len(text) - len(strings.TrimLeft(text, "0123456789")); n > maxDigits {
		return 0, true
	} else if n > 0 && n < len(text) {
		if text[n] != '.' && text[n] != ')' {
			return 0, true
		}
		n++
	}
	switch {
	case n == len(text):
		return 0, false
	case n > 0 && text[n] == ' ':
		return n + 1, true
	}
	return 0, true
}

// maxDigits is the most digits in an item's number.
const maxDigits = 4

// runLength returns how often the first byte of text is repeated.
func runLength(text string) int { return len(text) - len(strings.TrimLeft(text, text[:1])) }
