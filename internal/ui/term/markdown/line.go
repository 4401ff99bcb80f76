package markdown

import (
	"strings"
	"unicode/utf8"

	"coder/internal/ui/term/ink"
)

// kind is the kind of a line, determined by its beginning.
type kind uint8

const (
	unsure kind = iota
	blank
	prose
	heading
	quote
	bullet
	rule
	opening // of a block of code
	row     // possibly of a table
)

// start draws the first n bytes of the line unchanged and continues inline.
func (s *Stream) start(n int, l ink.Look, whole bool) {
	head := strings.ReplaceAll(s.line[:n], "\t", "    ")
	s.wrap = ink.Wrap{Put: s.put, Indent: ink.Width(head)}
	if s.Width != nil {
		s.wrap.Width = s.Width()
	}
	s.wrap.Fixed(l, head)
	if n > 0 {
		s.prev = s.line[n-1]
	}
	s.line, s.begun = s.line[n:], true
	s.inline(whole)
}

// codeIndent is the indent of code without a fence.
const codeIndent = 4

// isCode reports whether the begun line is indented code: after other indented code, or after a blank
// line. Text that looks like an item, quote, row or fence is one, unless the line before was code.
func (s *Stream) isCode() bool {
	text := strings.TrimLeft(s.line, " \t")
	blanks := s.line[:len(s.line)-len(text)]
	if text == "" || len(blanks) > headBytes || ink.Width(strings.ReplaceAll(blanks, "\t", "    ")) < s.item+codeIndent {
		return false
	}
	return s.code || (s.ends > 1 || !s.wrote) && len(s.table.rows) == 0 && !strings.Contains("-*+>|`~0123456789", text[:1])
}

// place records the position of a line with a known kind: later lines may belong to it, or to the item
// before.
func (s *Stream) place(k kind, n int) {
	if k == blank {
		return
	}
	s.code = false
	head := s.line[:len(s.line)-len(strings.TrimLeft(s.line, " \t"))]
	if k == bullet {
		head = s.line[:n]
		if strings.HasSuffix(head, "] ") { // its continuation is below its box
			head = head[:len(head)-boxBytes]
		}
	}
	if column := ink.Width(strings.ReplaceAll(head, "\t", "    ")); k == bullet || column < s.item && s.ends > 1 {
		s.item = column
	}
}

// classify returns a line's kind, and how much of its beginning stays unchanged.
func classify(line string, whole bool) (kind, int) {
	text := strings.TrimLeft(line, " \t")
	indent := len(line) - len(text)
	k, n := unsure, 0
	switch {
	case text == "" && whole:
		return blank, 0
	case text == "":
	case text[0] == '|':
		if len(line) > rowBytes {
			return prose, 0
		}
		return row, indent
	default:
		k, n = classifyText(text, whole)
	}
	if k == unsure && (whole || len(line) > headBytes) {
		k, n = prose, 0
	}
	return k, indent + n
}

func classifyText(text string, whole bool) (kind, int) {
	switch text[0] {
	case '#':
		n := run(text)
		switch {
		case n > 6:
			return prose, 0
		case n == len(text):
			return unsure, 0
		case text[n] == ' ' || text[n] == '\t':
			return heading, n + 1
		}
		return prose, 0
	case '`', '~':
		n := run(text)
		switch {
		case n == len(text) && n < 3 && !whole:
			return unsure, 0
		case n < 3 || text[0] == '`' && strings.Contains(text[n:], "`") || len(text) > headBytes:
			return prose, 0
		case !whole:
			return unsure, 0
		}
		return opening, 0
	case '>':
		n := len(text) - len(strings.TrimLeft(text, "> \t"))
		if n == len(text) && !whole {
			return unsure, 0
		}
		if strings.HasPrefix(text[n:], "|") && len(text) <= rowBytes {
			return row, n
		}
		if code := text[n:]; code != "" && (code[0] == '`' || code[0] == '~') {
			switch k, _ := classifyText(code, whole); k {
			case unsure:
				return unsure, 0
			case opening:
				return opening, n
			}
		}
		item, sure := itemSign(text[n:])
		if !sure && !whole && n < headBytes/2 {
			return unsure, 0
		}
		return quote, n + item
	case '-', '*', '_', '+':
		sign := text[:1]
		if strings.Trim(text, sign+" ") == "" {
			switch {
			case !whole:
				return unsure, 0
			case strings.Count(text, sign) >= 3 && sign != "+" && len(text) <= headBytes:
				return rule, 0
			}
		}
		if len(text) > 1 && text[1] == ' ' && sign != "_" {
			return boxed(text, 2, whole)
		}
		return prose, 0
	}
	if text[0] == ':' || text[0] == '[' {
		return classifyNote(text, whole)
	}
	switch n, sure := otherSign(text); {
	case n > 0:
		return bullet, n
	case !sure && !whole:
		return unsure, 0
	}
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	switch rest := text[digits:]; {
	case digits == 0 || digits > maxDigits || len(rest) > 1 && (rest[0] != '.' && rest[0] != ')' || rest[1] != ' '):
		return prose, 0
	case len(rest) > 1:
		return boxed(text, digits+2, whole)
	case whole || rest != "" && rest != "." && rest != ")":
		return prose, 0
	}
	return unsure, 0
}

// boxed classifies an item whose sign has n bytes, and its box, if any: - [x] done.
func boxed(text string, n int, whole bool) (kind, int) {
	rest := text[n:]
	for _, box := range []string{"[ ] ", "[x] ", "[X] "} {
		switch {
		case strings.HasPrefix(rest, box):
			return bullet, n + boxBytes
		case rest != "" && strings.HasPrefix(box, rest) && !whole:
			return unsure, 0
		}
	}
	return bullet, n
}

const boxBytes = len("[ ] ")

// otherSigns are the bullets that people use besides Markdown's own, and numerals the Chinese digits.
const (
	otherSigns = "•◦▪‣●○■□"
	numerals   = "一二三四五六七八九十0123456789"
)

// otherSign returns the length of an item's sign that is not Markdown: • a, 1、a, （1）a, 一、a. It is 0 if
// there is none, which is not sure while more may come.
func otherSign(text string) (n int, sure bool) {
	first, size := utf8.DecodeRuneInString(text)
	if strings.ContainsRune(otherSigns, first) {
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
	case counted > maxCounted, counted == 0 && (rest != "" || first != '（'):
		return 0, true
	case rest == "":
		return 0, false
	case next == end && counted > 0:
		return len(text) - len(rest) + nextSize, true
	}
	return 0, true
}

// maxCounted is the longest number in such a sign, in bytes.
const maxCounted = 9

// classifyNote distinguishes a footnote, [^1]: text, and a definition, : text, from prose.
func classifyNote(text string, whole bool) (kind, int) {
	if text[0] == ':' {
		switch {
		case len(text) == 1 && !whole:
			return unsure, 0
		case len(text) > 1 && text[1] == ' ':
			return bullet, 2
		}
		return prose, 0
	}
	name, words, named := strings.Cut(text, "]: ")
	switch {
	case named && strings.HasPrefix(name, "[^") && len(name) <= longestNote && !strings.Contains(name, "]"):
		return bullet, len(text) - len(words)
	case whole || named || len(text) > longestNote+len("]:") || len(text) > 1 && text[1] != '^':
		return prose, 0
	}
	if i := strings.IndexByte(text, ']'); i >= 0 && i+1 < len(text) && text[i+1:] != ":" {
		return prose, 0
	}
	return unsure, 0
}

// longestNote is the longest name of a footnote.
const longestNote = 32

// itemSign returns the length of a list item's sign; 0 if text begins none, which is not sure while more
// may come.
func itemSign(text string) (n int, sure bool) {
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

// run returns how often the first byte of text is repeated.
func run(text string) int { return len(text) - len(strings.TrimLeft(text, text[:1])) }
