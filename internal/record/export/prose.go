package export

import (
	"cmp"
	entities "html"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/lazy"
	"coder/internal/core/sanitize"
)

// deepest is how far lists and quotes may stand within each other, and signs
// within a line; what lies deeper is text.
const deepest = 8

// prose writes Markdown. Pictures and raw HTML in it are text: the page loads
// nothing.
func (p page) prose(text string) {
	lines := strings.Split(strings.Trim(sanitize.Text(text), "\n"), "\n")
	p.places = make(map[string]string)
	fenced, folded := false, strings.ToLower(text)
	itemsSetIn(lines)
	lines = slices.DeleteFunc(lines, func(line string) bool {
		if begins := strings.TrimSpace(line); strings.HasPrefix(begins, "```") || strings.HasPrefix(begins, "~~~") {
			fenced = !fenced
		}
		place := placeLine().FindStringSubmatch(line)
		if fenced || place == nil || !isAddress(place[2]) {
			return false
		}
		name := strings.ToLower(place[1])
		if strings.Count(folded, "["+name+"]") == 1 {
			return false // nothing else leads there
		}
		p.places[name] = place[2]
		return true
	})
	p.body(lines, 0)
}

var (
	itemMark   = lazy.Regexp(`^( {0,3})([-*+]|\d{1,9}[.)])( +|$)`)
	ruleLine   = lazy.Regexp(`^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$`)
	underline  = lazy.Regexp(`^ {0,3}(?:={2,}|-{2,}) *$`)                                                       // of a heading
	placeLine  = lazy.Regexp(`^ {0,3}\[([^\]^][^\]]*)\]: +<?([^ >]+)>?(?: +(?:"[^"]*"|'[^']*'|\([^)]*\)))? *$`) // [name]: address
	hardEnd    = lazy.Regexp(`(?: {2,}|\\)\n`)                                                                  // of a line that is not to be joined with the next
	breakTag   = lazy.Regexp(`(?i)^<br ?/?>`)
	tableRule  = lazy.Regexp(`^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$`)
	quoteStart = lazy.Regexp(`^ {0,3}> ?`)
	// entity is a character that is written by its name or number.
	entity = lazy.Regexp(`^&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});`)
)

// body writes the blocks that lines are made of.
func (p page) body(lines []string, depth int) {
	for len(lines) > 0 {
		line, n := lines[0], 1
		switch {
		case strings.TrimSpace(line) == "":
		case setIn(line):
			n = p.setInCode(lines)
		case frontmatter.Fence(line) != "":
			n = p.code(lines)
		case headingLine(line):
			tag := headingTag(len(line) - len(strings.TrimLeft(line, "#")))
			p.raw("<", tag, ">")
			p.spans(strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "#")), 0)
			p.raw("</", tag, ">\n")
		case ruleLine().MatchString(line):
			p.raw("<hr>\n")
		case depth < deepest && quoteStart().MatchString(line):
			n = p.quote(lines, depth)
		case depth < deepest && itemMark().MatchString(line):
			n = p.list(lines, depth)
		case startsTable(lines):
			n = p.table(lines)
		default:
			for n < len(lines) && !startsBlock(lines[n:]) && !underline().MatchString(lines[n]) {
				n++
			}
			text, tag := strings.TrimSpace(strings.Join(lines[:n], "\n")), "p"
			if n < len(lines) && underline().MatchString(lines[n]) {
				tag, n = headingTag(1), n+1
				if strings.Contains(lines[n-1], "-") {
					tag = headingTag(2)
				}
			}
			p.raw("<", tag, ">")
			for i, line := range hardEnd().Split(text, -1) {
				if i > 0 {
					p.raw("<br>") // a line end would be another
				}
				p.spans(line, 0)
			}
			p.raw("</", tag, ">\n")
		}
		lines = lines[n:]
	}
}

// itemsSetIn writes the tabs that set lines of lists in as blanks.
func itemsSetIn(lines []string) {
	fenced, list := false, false
	for i, line := range lines {
		if frontmatter.Fence(line) != "" {
			fenced = !fenced
		}
		begins := strings.TrimLeft(line, " \t")
		switch {
		case fenced || begins == "":
			continue
		case itemMark().MatchString(begins):
			list = true
		case begins == line:
			list = false
		}
		if list {
			lines[i] = strings.ReplaceAll(line[:len(line)-len(begins)], "\t", "    ") + begins
		}
	}
}

// headingTag is what a heading of a level is written with, below those of the page.
func headingTag(level int) string { return "h" + strconv.Itoa(min(level+2, 6)) }

// startsBlock reports whether a paragraph ends before lines.
func startsBlock(lines []string) bool {
	line := lines[0]
	return strings.TrimSpace(line) == "" || frontmatter.Fence(line) != "" || headingLine(line) || ruleLine().MatchString(line) ||
		quoteStart().MatchString(line) || itemMark().MatchString(line) || startsTable(lines)
}

// code writes a block of code, and tells how many lines it took.
func (p page) code(lines []string) int {
	lang, source, n := codeBlock(lines)
	if lang == "diff" || lang == "patch" || isDiff(source) {
		p.diff(source)
		return n
	}
	p.raw("<pre><code>", escaper.Replace(source), "</code></pre>\n")
	return n
}

// setIn reports whether a line that begins a block is code by standing further in.
func setIn(line string) bool {
	return strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
}

// setInCode writes lines of code that stand further in, and tells how many they are.
func (p page) setInCode(lines []string) (n int) {
	var source []string
	for i, line := range lines {
		blank := strings.TrimSpace(line) == ""
		if !blank && !setIn(line) {
			break
		}
		if !blank {
			n = i + 1
		}
		code, tab := strings.CutPrefix(line, "\t")
		if !tab {
			code = strings.TrimPrefix(line, "    ")
		}
		source = append(source, code)
	}
	p.raw("<pre><code>", escaper.Replace(strings.Join(source[:n], "\n")), "</code></pre>\n")
	return n
}

// quote writes what somebody else said.
func (p page) quote(lines []string, depth int) (n int) {
	var inner []string
	for n < len(lines) {
		mark := quoteStart().FindString(lines[n])
		if mark == "" && (strings.TrimSpace(lines[n]) == "" || startsBlock(lines[n:])) {
			break
		}
		inner = append(inner, lines[n][len(mark):])
		n++
	}
	p.raw("<blockquote>\n")
	p.body(inner, depth+1)
	p.raw("</blockquote>\n")
	return n
}

// list writes items of one kind.
func (p page) list(lines []string, depth int) (n int) {
	kind := itemMark().FindStringSubmatch(lines[0])[2]
	end := "</ul>\n"
	if number, err := strconv.Atoi(kind[:len(kind)-1]); err == nil {
		p.raw(`<ol start="`, strconv.Itoa(number), `">`, "\n")
		end = "</ol>\n"
	} else {
		p.raw("<ul>\n")
	}
	for n < len(lines) {
		m := itemMark().FindStringSubmatch(lines[n])
		if m == nil || m[2][len(m[2])-1] != kind[len(kind)-1] || ruleLine().MatchString(lines[n]) {
			break
		}
		item, took := itemLines(lines[n:], m)
		p.raw("<li>")
		p.body(item, depth+1)
		p.raw("</li>\n")
		n += took
	}
	p.raw(end)
	return n
}

// itemLines are the lines of the item that lines begin with, without what sets
// them in, and how many there are with the blank ones that follow.
func itemLines(lines []string, mark []string) (item []string, took int) {
	indent := len(mark[1]) + len(mark[2]) + max(1, min(len(mark[3]), 4))
	first := lines[0][min(len(mark[0]), len(lines[0])):]
	for sign, shown := range map[string]string{"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "} {
		if rest, ok := strings.CutPrefix(first, sign); ok {
			first = shown + rest
		}
	}
	item, blank := []string{first}, false
	for took = 1; took < len(lines); took++ {
		line := lines[took]
		in := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case strings.TrimSpace(line) == "":
			blank = true
			item = append(item, "")
			continue
		case in >= len(mark[1])+2: // further in than its sign
			line = line[min(in, indent):]
		case blank || startsBlock(lines[took:]):
			return item, took
		}
		item, blank = append(item, line), false
	}
	return item, took
}

// startsTable reports whether lines begin with the head of a table.
func startsTable(lines []string) bool {
	return len(lines) > 1 && strings.Contains(lines[0], "|") && strings.Contains(lines[1], "-") && tableRule().MatchString(lines[1]) &&
		len(row(lines[0])) == len(row(lines[1]))
}

// table writes a table.
func (p page) table(lines []string) (n int) {
	var classes []string
	for _, c := range row(lines[1]) {
		class := ""
		switch left, right := strings.HasPrefix(c, ":"), strings.HasSuffix(c, ":"); {
		case left && right:
			class = ` class="centre"`
		case right:
			class = ` class="right"`
		}
		classes = append(classes, class)
	}
	cells := func(tag, line string) {
		of := row(line)
		p.raw("<tr>")
		for i, class := range classes {
			p.raw("<", tag, class, ">")
			if i < len(of) {
				p.spans(of[i], 0)
			}
			p.raw("</", tag, ">")
		}
		p.raw("</tr>\n")
	}
	p.raw(`<div class="table"><table>`, "\n<thead>\n")
	cells("th", lines[0])
	p.raw("</thead>\n<tbody>\n")
	for n = 2; n < len(lines) && strings.Contains(lines[n], "|"); n++ {
		cells("td", lines[n])
	}
	p.raw("</tbody>\n</table></div>\n")
	return n
}

// row is the cells of a line of a table. A bar in backticks or after a
// backslash is text.
func row(line string) (cells []string) {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	var cell strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '|' && !quoted:
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			quoted = quoted != (c == '`')
			cell.WriteByte(c)
		}
	}
	return append(cells, strings.TrimSpace(cell.String()))
}

// emphasis are the signs around text, and what they make of it; longer ones
// first.
var emphasis = []struct{ sign, begins, ends string }{
	{"***", "<strong><em>", "</em></strong>"}, {"**", "<strong>", "</strong>"}, {"__", "<strong>", "</strong>"}, {"~~", "<del>", "</del>"}, {"*", "<em>", "</em>"}, {"_", "<em>", "</em>"},
}

// spans writes the text of a block.
func (p page) spans(text string, depth int) {
	plain, before := 0, ' '
	flush := func(to int) { p.raw(escaper.Replace(text[plain:to])) }
	for i := 0; i < len(text); {
		n := 0
		if depth < deepest && strings.IndexByte("`*_~[!<h&\\", text[i]) >= 0 {
			flush(i)
			if n = p.span(text[i:], before, depth); n > 0 {
				plain = i + n
			} else {
				plain = i
			}
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[i:])
		}
		before, _ = utf8.DecodeLastRuneInString(text[:i+n])
		i += n
	}
	flush(len(text))
}

// inWord reports whether what follows a letter or a digit goes on in a word. Words of Chinese
// and the like are not parted, so that anything may follow them.
func inWord(before rune) bool {
	return (unicode.IsLetter(before) || unicode.IsDigit(before)) && !unicode.In(before, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// span writes what text begins with if that is more than a character, and tells
// how long it is. Before is what stands before it.
func (p page) span(text string, before rune, depth int) int {
	line, _, _ := strings.Cut(text[:min(len(text), spanLimit)], "\n\n")
	switch {
	case line[0] == '`':
		if code, n := codeSpan(text); n > 0 {
			p.raw("<code>", escaper.Replace(code), "</code>")
			return n
		}
	case line[0] == '\\' && len(line) > 1 && strings.IndexByte("\\`*_~[]<>#|!()-+.", line[1]) >= 0:
		p.raw(escaper.Replace(line[1:2]))
		return 2
	case line[0] == '&':
		name := entity().FindString(line)
		meant := strings.ReplaceAll(entities.UnescapeString(name), "\u00a0", " ")
		if meant != name && !strings.ContainsFunc(meant, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
			p.raw(escaper.Replace(meant))
			return len(name)
		}
	case line[0] == '[', strings.HasPrefix(line, "!["):
		return p.link(line, depth)
	case line[0] == '<' && breakTag().MatchString(line):
		p.raw("<br>")
		return strings.IndexByte(line, '>') + 1
	case line[0] == '<':
		if address, _, ok := strings.Cut(line[1:], ">"); ok && isAddress(address) {
			p.anchor(address, address, depth)
			return len(address) + 2
		}
	case line[0] == 'h' && !inWord(before):
		if address := bareAddress(line); address != "" {
			p.anchor(address, address, deepest)
			return len(address)
		}
	}
	for _, e := range emphasis {
		if n := emphasised(line, e.sign, before); n > 0 {
			p.raw(e.begins)
			p.spans(line[len(e.sign):n-len(e.sign)], depth+1)
			p.raw(e.ends)
			return n
		}
	}
	return 0
}

// emphasised is how long the text is that line begins with and that stands between two
// signs, with them; 0 if there is none. Underscores and single stars within words, as in
// 2*3*4, and underscores around a name such as __init__, are text.
func emphasised(line, sign string, before rune) int {
	rest, ok := strings.CutPrefix(line, sign)
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	ascii := before < utf8.RuneSelf && word(before) && rest != "" && rest[0] < utf8.RuneSelf && word(rune(rest[0]))
	if !ok || sign[0] == '_' && word(before) || sign == "*" && ascii || rest == "" || strings.HasPrefix(rest, sign[:1]) || unicode.IsSpace(rune(rest[0])) {
		return 0
	}
	for end := 0; ; {
		i := strings.Index(rest[end:], sign)
		if i < 0 {
			return 0
		}
		end += i
		after, size := utf8.DecodeRuneInString(rest[end+len(sign):])
		next, _ := utf8.DecodeRuneInString(rest[end+len(sign)+size:])
		inner := rest[:end]
		switch {
		case sign == "__" && !strings.Contains(inner, " "), sign[0] == '_' && (after == '(' || strings.ContainsRune("./", after) && word(next)):
			return 0
		case inner == "", unicode.IsSpace(rune(inner[len(inner)-1])), inner[len(inner)-1] == '\\', sign[0] == '_' && word(after),
			len(sign) == 1 && strings.HasPrefix(rest[end+1:], sign), strings.Count(inner, "`")%2 == 1:
			for end += len(sign); strings.HasPrefix(rest[end:], sign[:1]); end++ {
			}
			continue
		}
		return len(inner) + 2*len(sign)
	}
}

// link writes a link, or a picture as one.
func (p page) link(line string, depth int) int {
	start := strings.IndexByte(line, '[') + 1
	open := 1
	for i := start; i < len(line); i++ {
		switch line[i] {
		case '[':
			open++
		case ']':
			open--
		}
		if open > 0 {
			continue
		}
		rest, ok := strings.CutPrefix(line[i+1:], "(")
		address, _, closed := cutAddress(rest)
		if !ok || !closed {
			return p.reference(line, start, i, depth)
		}
		target, _, _ := strings.Cut(strings.TrimSpace(address), " ")
		if within, ok := strings.CutPrefix(strings.TrimSpace(address), "<"); ok { // blanks may be in it
			within, _, _ = strings.Cut(within, ">")
			target = strings.ReplaceAll(within, " ", "%20")
		}
		p.anchor(target, line[start:i], depth)
		return i + 1 + len("()") + len(address)
	}
	return 0
}

// reference writes a link whose address stands elsewhere under a name: [text][name],
// [name][] or [name].
func (p page) reference(line string, start, end, depth int) int {
	name, took := line[start:end], end+1
	if rest, ok := strings.CutPrefix(line[took:], "["); ok {
		if given, _, closed := strings.Cut(rest, "]"); closed {
			name, took = cmp.Or(given, name), took+len(given)+len("[]")
		}
	}
	address := p.places[strings.ToLower(name)]
	if address == "" {
		return 0
	}
	p.anchor(address, line[start:end], depth)
	return took
}

// cutAddress is what stands before the parenthesis that closes.
func cutAddress(text string) (address, rest string, ok bool) {
	open := 1
	for i, r := range text {
		switch r {
		case '(':
			open++
		case ')':
			open--
		case '\n':
			return "", "", false
		}
		if open == 0 {
			return text[:i], text[i+1:], true
		}
	}
	return "", "", false
}

// anchor writes a link to a place on the web; another address is shown beside
// the text.
func (p page) anchor(address, text string, depth int) {
	if isAddress(address) && !p.linked {
		p.raw(`<a href="`, escaper.Replace(address), `" rel="noopener noreferrer nofollow">`)
		p.linked = true
		p.spans(text, depth+1)
		p.raw("</a>")
		return
	}
	p.spans(text, depth+1)
	if address != "" && address != text && !p.linked {
		p.raw(" (<code>", escaper.Replace(address), "</code>)")
	}
}

// isAddress reports whether a browser may be sent to s.
func isAddress(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	if !ok {
		rest, ok = strings.CutPrefix(s, "mailto:")
	}
	return ok && rest != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>\"`", r)
	})
}

// bareAddress is the address that text begins with, or "". It ends where prose
// goes on.
func bareAddress(text string) string {
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		return ""
	}
	end := strings.IndexFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>\"`|*", r)
	})
	if end < 0 {
		end = len(text)
	}
	address := strings.TrimRight(text[:end], ".,;:!?'")
	if strings.Count(address, "(") < strings.Count(address, ")") {
		address = strings.TrimSuffix(address, ")")
	}
	if !isAddress(address) || strings.HasSuffix(address, "//") {
		return ""
	}
	return address
}
