package codeindex

import (
	"bytes"
	"cmp"
	"path"
	"strings"
)

// Limits of an outline.
const (
	maxSection     = 120  // lines; longer sections are split
	pieceLines     = 60   // lines per piece of plain text
	maxSections    = 4096 // per file; the rest joins the last section
	maxName        = 120  // bytes of a symbol
	maxDoc         = 40   // lines of comment that belong to a declaration
	maxCharLiteral = 200  // bytes between two apostrophes of a literal
)

// section is a part of a file about one thing. Lines count from zero; end is exclusive.
type section struct {
	docStart, line, end int // start with comment, declaration, end
	kind                Kind
	symbol              string
	names               []string // all names declared in it
	isContinuation      bool     // not the first piece of a long section
}

// splitSections splits a file into sections that cover all its lines. A declaration extends to the next one,
// neighbouring values share a section, and a long section is split: all pieces have its symbol, and the
// first also has its names.
func splitSections(name string, lines [][]byte) (pieces []section) {
	var decls []declaration
	switch l := languageOf(name); {
	case l != nil:
		decls = l.declarations(lines)
	case markdownExts().has(path.Ext(name)):
		decls = findHeadings(lines)
	}
	var list []section
	if len(decls) == 0 || decls[0].doc > 0 {
		list = append(list, section{kind: KindText})
	}
	for _, d := range decls {
		if last := len(list) - 1; last >= 0 && (d.kind == KindValue && list[last].kind == KindValue ||
			len(list) >= maxSections) {
			list[last].names = append(list[last].names, d.name)
			list[last].symbol = cmp.Or(list[last].symbol, d.symbol())
			continue
		}
		list = append(list, section{docStart: d.doc, line: d.line, kind: d.kind, symbol: d.symbol(), names: []string{d.name}})
	}
	for i, s := range list {
		if s.end = len(lines); i+1 < len(list) {
			s.end = list[i+1].docStart
		}
		length := maxSection
		if s.kind == KindText {
			length = pieceLines
		}
		for s.end-s.docStart > length+length/2 && len(pieces) < 2*maxSections {
			piece := s
			piece.end = max(s.docStart+length, s.line+1)
			pieces = append(pieces, piece)
			s.docStart, s.line, s.names, s.isContinuation = piece.end, piece.end, nil, true
		}
		pieces = append(pieces, s)
	}
	return pieces
}

func findHeadings(lines [][]byte) (list []declaration) {
	fenced := false
	for i, line := range lines {
		if bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("```")) {
			fenced = !fenced
		}
		text := bytes.TrimLeft(line, "#")
		if fenced || len(text) == len(line) || len(text) == 0 || text[0] != ' ' {
			continue
		}
		list = append(list, declaration{doc: i, line: i, kind: KindHeading, name: clipName(string(bytes.Trim(text, " #\r")))})
	}
	return list
}

// declaration is a line that declares a name.
type declaration struct {
	doc, line int
	indent    int
	kind      Kind
	name      string
	parent    string
}

func (d declaration) symbol() string {
	if d.parent == "" {
		return d.name
	}
	return d.parent + "." + d.name
}

func (l *language) declarations(lines [][]byte) (list []declaration) {
	var in []declaration // the types around the current line, by indentation
	var text quoteState
	var group Kind
	for i, line := range lines {
		inside := text.closer != ""
		text.scanLine(l, line)
		indent := len(line) - len(bytes.TrimLeft(line, " \t\r"))
		if inside || indent == len(line) {
			continue
		}
		line = line[:min(len(line), maxLineBytes)]
		d, ok := l.parseDeclaration(line, min(indent, len(line)), group)
		if l.has(traitGroups) && indent == 0 {
			group = "" // the kind of the names in parentheses that the line opens, if any
			if d.name == "" && bytes.HasSuffix(bytes.TrimRight(line, " \t\r"), []byte("(")) {
				group = d.kind
			}
		}
		if !ok {
			continue
		}
		d.line, d.doc, d.indent = i, i, indent
		for d.doc > 0 && i-d.doc < maxDoc && l.isComment(bytes.TrimLeft(lines[d.doc-1], " \t")) {
			d.doc-- // comments and attributes directly above belong to it
		}
		if last := len(list) - 1; last >= 0 {
			d.doc = max(d.doc, list[last].line+1)
		}
		if !l.has(traitTopLevelOnly) {
			for len(in) > 0 && in[len(in)-1].indent >= d.indent {
				in = in[:len(in)-1]
			}
			if len(in) > 0 && d.parent == "" {
				d.parent = in[len(in)-1].name
			}
			if d.kind == KindType {
				in = append(in, d)
			}
		}
		if d.parent != "" && d.kind == KindFunction {
			d.kind = KindMethod
		}
		list = append(list, d)
	}
	return list
}

func (l *language) isComment(line []byte) bool {
	for _, mark := range l.lineComments {
		if bytes.HasPrefix(line, []byte(mark)) {
			return true
		}
	}
	if len(line) == 0 {
		return false
	}
	switch line[0] {
	case '@', '[': // attributes
		return true
	case '#':
		return len(line) > 1 && line[1] == '['
	case '/', '*':
		return l.blockComment[0] != ""
	}
	return false
}

// clipName makes a name valid UTF-8 of limited length.
func clipName(name string) string {
	if len(name) > maxName {
		return strings.ToValidUTF8(name[:maxName], "")
	}
	return strings.ToValidUTF8(name, "\ufffd")
}

// quoteState tracks comments and strings that span lines.
type quoteState struct {
	closer string // what ends the one we are in, "" outside
}

func (q *quoteState) scanLine(l *language, line []byte) {
	for i := 0; i < len(line); {
		if q.closer != "" {
			n := bytes.Index(line[i:], []byte(q.closer))
			if n < 0 {
				return
			}
			escaped := l.has(traitEscapes) && n > 0 && line[i+n-1] == '\\'
			if i += n + len(q.closer); !escaped {
				q.closer = ""
			}
			continue
		}
		if !l.specialBytes[line[i]] {
			i++
			continue
		}
		n := q.openQuote(l, line[i:])
		if n < 0 {
			return
		}
		i += n
	}
}

// openQuote handles a byte that may begin a comment or a string, and returns how many bytes to skip; -1
// skips the line.
func (q *quoteState) openQuote(l *language, rest []byte) int {
	for _, mark := range l.quotes {
		if bytes.HasPrefix(rest, []byte(mark)) {
			q.closer = mark
			return len(mark)
		}
	}
	for _, mark := range l.lineComments {
		if bytes.HasPrefix(rest, []byte(mark)) {
			return -1
		}
	}
	if l.blockComment[0] != "" && bytes.HasPrefix(rest, []byte(l.blockComment[0])) {
		q.closer = l.blockComment[1]
		return len(l.blockComment[0])
	}
	if rest[0] == '"' || rest[0] == '\'' {
		// A string that does not end on its line ends there anyway; a lone apostrophe is not a string.
		end, otherwise := len(rest), -1
		if rest[0] == '\'' {
			end, otherwise = min(len(rest), maxCharLiteral), 1
		}
		for i := 1; i < end; i++ {
			switch rest[i] {
			case '\\':
				i++
			case rest[0]:
				return i + 1
			}
		}
		return otherwise
	}
	return 1
}

// parseDeclaration returns what line declares, if anything. group is the kind of the parenthesized names
// around the line, if any.
func (l *language) parseDeclaration(line []byte, indent int, group Kind) (d declaration, ok bool) {
	rest := line[indent:]
	switch {
	case group != "" && indent == 1:
		d.kind, d.name = group, firstIdent(rest)
		return d, d.name != ""
	case l.has(traitTopLevelOnly) && indent > 0:
		return d, false
	}
	for {
		word, after := cutWord(rest)
		if kind, known := l.keywords[string(word)]; known {
			return l.parseName(line, indent, declaration{kind: kind, name: string(word)}, after)
		}
		if len(word) == 0 || !l.modifiers[string(word)] {
			break
		}
		rest = bytes.TrimLeft(skipBrackets(after, '(', ')'), " \t")
	}
	if l.has(traitBareFunctions) {
		return l.parseFunction(bytes.TrimSpace(line), indent)
	}
	return d, false
}

// parseName parses the name after a keyword; d.name is the keyword.
func (l *language) parseName(line []byte, indent int, d declaration, rest []byte) (declaration, bool) {
	keyword := d.name
	rest = bytes.TrimLeft(skipBrackets(rest, '<', '>'), " \t*&!")
	next, after := cutWord(rest)
	if kind, known := l.keywords[string(next)]; known { // enum class, const fn
		return l.parseName(line, indent, declaration{kind: kind, name: string(next)}, after)
	}
	switch {
	case keyword == "impl":
		if _, of, ok := bytes.Cut(rest, []byte(" for ")); ok {
			rest = of
		}
		d.name = qualifiedIdent(bytes.TrimLeft(rest, " &"))
	case l.has(traitGroups) && d.kind == KindFunction:
		if inside, after, ok := bytes.Cut(rest, []byte(")")); ok && rest[0] == '(' { // the receiver
			inside, _, _ = bytes.Cut(inside[1:], []byte("["))
			d.parent = firstIdent(inside[bytes.LastIndexAny(inside, " *\t")+1:])
			rest = bytes.TrimLeft(after, " \t")
		}
		d.name = firstIdent(rest)
	case l.has(traitGroups) && len(rest) > 0 && rest[0] == '(':
		d.name = ""
		return d, d.kind == KindValue
	case d.kind == KindValue && indent > 0:
		if !l.has(traitArrows) || !isArrow(rest) {
			return d, false
		}
		d.kind, d.name = KindFunction, firstIdent(rest)
	case keyword == "init" || keyword == "subscript":
	case l.has(traitExtends) && d.kind == KindFunction:
		before, _, _ := bytes.Cut(rest, []byte("("))
		if i := bytes.LastIndexByte(before, '.'); i > 0 {
			d.parent, before = firstIdent(before), before[i+1:]
		}
		d.name = firstIdent(before)
	default:
		d.name = qualifiedIdent(rest)
	}
	if d.kind == KindValue && l.has(traitArrows) && isArrow(rest) {
		d.kind = KindFunction
	}
	if l.has(traitTags) && d.kind == KindType && !bytes.ContainsAny(line, "{") && bytes.ContainsAny(line, ";()=*") {
		return l.parseFunction(bytes.TrimSpace(line), indent) // struct foo *bar(void)
	}
	return d, d.name != ""
}

// isArrow reports whether a JavaScript value is a function.
func isArrow(rest []byte) bool {
	_, value, ok := bytes.Cut(rest, []byte("="))
	if !ok {
		return false
	}
	value = bytes.TrimSpace(value)
	value = bytes.TrimSpace(bytes.TrimPrefix(value, []byte("async")))
	return bytes.Contains(value, []byte("=>")) || bytes.HasPrefix(value, []byte("function")) || bytes.Equal(value, []byte("("))
}

// controlKeywords are keywords that precede parentheses but declare nothing.
var controlKeywords = lazySet(`if for while switch catch return else do throw new case await yield delete goto using lock foreach
	sizeof typeof synchronized assert super this when with function not and or until elif then in echo exec eval test
	try finally import require defined static_assert alignas decltype operator print include from`)

// parseFunction recognises a function without a keyword: words, the last of them a name, then parentheses and
// no semicolon. The line is trimmed.
func (l *language) parseFunction(line []byte, indent int) (d declaration, ok bool) {
	open := bytes.IndexByte(line, '(')
	if open <= 0 || line[0] == '@' || line[0] == '#' || line[len(line)-1] == ';' || bytes.ContainsAny(line[:open], "=.\"'`,;{}!?+|/") {
		return d, false
	}
	before := bytes.TrimRight(line[:open], " \t")
	from := len(before)
	for from > 0 && (isNameByte(before[from-1]) || before[from-1] == ':' || before[from-1] == '~') {
		from--
	}
	word, _ := cutWord(line)
	d.kind, d.name = KindFunction, clipName(strings.Trim(string(before[from:]), ":"))
	if d.name == "" || isDigits(d.name) || controlKeywords().has(d.name) || controlKeywords().has(string(word)) {
		return d, false
	}
	if i := strings.LastIndex(d.name, "::"); i > 0 { // Type::name
		d.parent, d.name = d.name[:i], d.name[i+2:]
		if j := strings.LastIndex(d.parent, "::"); j >= 0 {
			d.parent = d.parent[j+2:]
		}
	}
	if from == 0 && (indent > 0 || !l.has(traitTags)) { // the name is the only word
		// It must begin a body, not that of a function argument, and must not be a macro.
		handed := bytes.Contains(line, []byte("=>")) || bytes.Contains(line, []byte("function"))
		closed := bytes.Count(line, []byte("(")) == bytes.Count(line, []byte(")"))
		last := line[len(line)-1]
		opens := last == '{' || last == '}' || bytes.HasSuffix(line, []byte("()"))
		return d, !handed && closed && opens && (indent == 0 || strings.ToUpper(d.name) != d.name)
	}
	return d, indent == 0 || line[len(line)-1] != ')' || l.has(traitBraceOnNextLine)
}

func isNameByte(b byte) bool { return isWordByte[b] || b == '$' }

// cutWord splits the first word, with its sign, and the space after it off a line.
func cutWord(line []byte) (word, rest []byte) {
	n := 0
	for n < len(line) && (isNameByte(line[n]) || n == 0 && (line[n] == '@' || line[n] == '#')) {
		n++
	}
	return line[:n], bytes.TrimLeft(line[n:], " \t")
}

// firstIdent returns the identifier at the start of rest.
func firstIdent(rest []byte) string {
	n := 0
	for n < len(rest) && isNameByte(rest[n]) {
		n++
	}
	return clipName(string(rest[:n]))
}

// qualifiedIdent returns the possibly qualified identifier at the start of rest.
func qualifiedIdent(rest []byte) string {
	n := 0
	for n < len(rest) && (isNameByte(rest[n]) || n > 0 && strings.IndexByte(".:?!", rest[n]) >= 0) {
		n++
	}
	return clipName(strings.TrimRight(strings.TrimPrefix(string(rest[:n]), "self."), ".:"))
}

func skipBrackets(rest []byte, open, shut byte) []byte {
	if len(rest) == 0 || rest[0] != open {
		return rest
	}
	depth := 0
	for i, b := range rest {
		switch b {
		case open:
			depth++
		case shut:
			if depth--; depth == 0 {
				return rest[i+1:]
			}
		}
	}
	return rest
}
