package term

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
)

var diffInk = map[byte]ink.Role{0: ink.Dim, '+': ink.Good, '-': ink.Bad, ' ': ink.Plain}

// diffLine is a line of a diff, without its newline.
type diffLine struct {
	sign   byte // as [display.DiffLines] has it; 0 for a header or a note
	number int  // in the new file, or in the old one if the line is deleted; 0: none
	text   string
}

// diffLines returns the lines of a unified diff, cleaned.
func diffLines(unified string) (all []diffLine) {
	before, after := 0, 0
	for sign, line := range display.DiffLines(unified) {
		l := diffLine{sign: sign, text: strings.TrimSuffix(line, "\n")}
		switch sign {
		case 0:
			if b, a, _, ok := display.HunkHead(line); ok {
				before, after = b, a
			}
		case '-':
			l.number, before = before, before+1
		case '+':
			l.number, after = after, after+1
		default:
			l.number, before, after = after, before+1, after+1
		}
		all = append(all, l)
	}
	return all
}

// below returns the lines without the name of the only file, if the title above them has it.
func below(title string, lines []diffLine) []diffLine {
	named := func(l diffLine, sign string) (name string, ok bool) {
		name, ok = strings.CutPrefix(l.text, sign+" ")
		return strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/"), ok && l.sign == 0
	}
	if len(lines) < 3 {
		return lines
	}
	old, isOld := named(lines[0], "---")
	name, isNew := named(lines[1], "+++")
	if name == noFile {
		name = old
	}
	another := slices.ContainsFunc(lines[2:], func(l diffLine) bool { _, ok := named(l, "---"); return ok })
	if !isOld || !isNew || another || old != name && old != noFile || !strings.Contains(title, name) {
		return lines
	}
	return lines[2:]
}

// noFile is the name that a diff has for a file that does not exist.
const noFile = "/dev/null"

// drawDiff puts lines of a diff, each with its number and in its colour. Where lines were replaced by as
// many others, the words that differ are bold.
func drawDiff(lines []diffLine, ascii bool, put ink.SpanFunc) {
	d := diffDrawing{put: put, gap: signFor(ascii, "⋮", ":")}
	for _, l := range lines {
		d.columns = max(d.columns, len(strconv.Itoa(l.number)))
	}
	for _, l := range lines {
		switch {
		case l.sign == '-' && len(d.came) == 0:
			d.gone = append(d.gone, l)
			continue
		case l.sign == '+' && len(d.gone) > 0:
			d.came = append(d.came, l)
			continue
		}
		d.flush()
		if l.sign == '-' {
			d.gone = append(d.gone, l)
		} else {
			d.line(l, len(l.text), len(l.text))
		}
	}
	d.flush()
}

// diffDrawing is a diff being drawn.
type diffDrawing struct {
	put        ink.SpanFunc
	gap        string // between hunks
	columns    int    // of the numbers
	inFile     bool   // a line of the current file is above
	gone, came []diffLine
}

// flush draws the lines that were replaced and those that replace them.
func (d *diffDrawing) flush() {
	pairs := len(d.gone) == len(d.came)
	for n, lines := range [][]diffLine{d.gone, d.came} {
		for i, l := range lines {
			from, to := len(l.text), len(l.text)
			if pairs {
				other := [][]diffLine{d.came, d.gone}[n][i]
				f, t, alike := differingPart(l.text, other.text)
				if _, _, back := differingPart(other.text, l.text); alike && back {
					from, to = f, t
				}
			}
			d.line(l, from, to)
		}
	}
	d.gone, d.came = nil, nil
}

// line draws a line, bold between two places.
func (d *diffDrawing) line(l diffLine, from, to int) {
	_, _, rest, hunk := display.HunkHead(l.text)
	switch {
	case l.sign != 0:
		number := strconv.Itoa(l.number)
		d.put(ink.Style{Role: ink.Dim}, strings.Repeat(" ", hangIndent/2+d.columns-len(number))+number+" ")
		look := ink.Style{Role: diffInk[l.sign]}
		d.put(look, l.text[:from])
		d.put(ink.Style{Role: look.Role, Bold: true}, l.text[from:to])
		d.put(look, l.text[to:]+"\n")
	case !hunk:
		d.put(ink.Style{Role: ink.Dim}, l.text+"\n")
	case rest != "":
		d.put(ink.Style{Role: ink.Dim}, strings.Repeat(" ", hangIndent/2+d.columns+1)+rest+"\n")
	case d.inFile:
		d.put(ink.Style{Role: ink.Dim}, strings.Repeat(" ", hangIndent/2+d.columns-1)+d.gap+"\n")
	}
	d.inFile = l.sign != 0
}

// maxMarkedLine is the longest line of a diff in which words are marked.
const maxMarkedLine = 2000

// differingPart is the part of a diff's line in which it differs from another, from word to word. The lines are
// not alike where they have little in common.
func differingPart(line, other string) (from, to int, alike bool) {
	if len(line) > maxMarkedLine || len(other) > maxMarkedLine {
		return 1, 1, false
	}
	a, b := line[1:], other[1:] // behind the sign
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	for from > 0 && (!utf8.RuneStart(byteAt(a, from)) || !utf8.RuneStart(byteAt(b, from)) || endsInWord(a[:from]) &&
		(beginsWord(a[from:]) || beginsWord(b[from:]))) {
		from--
	}
	end := 0
	for end < len(a)-from && end < len(b)-from && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for end > 0 && (!utf8.RuneStart(a[len(a)-end]) || beginsWord(a[len(a)-end:]) &&
		(endsInWord(a[:len(a)-end]) || endsInWord(b[:len(b)-end]))) {
		end--
	}
	common := strings.TrimSpace(a[:from]) + strings.TrimSpace(a[len(a)-end:])
	return 1 + from, 1 + len(a) - end, 3*len(common) >= len(strings.TrimSpace(a))
}

// byteAt is the byte at a place, or one that begins a character at the end.
func byteAt(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return ' '
}

// endsInWord reports whether a text ends inside a word, and begins whether it begins so.
func endsInWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func beginsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}
