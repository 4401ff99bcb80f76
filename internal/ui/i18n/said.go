package i18n

import (
	"slices"
	"strings"
	"unicode"

	"coder/internal/core/message"
)

// Limits for translation: the nesting of sentences, the length of a line written for people, and the
// number of places where a sentence is split.
const (
	maxNesting = 8
	maxLine    = 4096
	maxParts   = 8
)

// TranslateText translates one or more sentences made elsewhere, each on its own line. Text that is not in the
// catalogue stays unchanged.
func (p *Printer) TranslateText(text string) string {
	if p.catalogue() == nil {
		return text
	}
	if t, ok := p.table[text]; ok && !strings.Contains(t, "%") {
		return t
	}
	r := sentenceContext{p, maxNesting, false}
	if !strings.Contains(text, "\n") {
		return r.translateLine(text)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		whole := strings.TrimSuffix(line, "\n")
		b.WriteString(r.translateLine(whole))
		b.WriteString(line[len(whole):])
	}
	return b.String()
}

// TranslateError translates the sentence of an error.
func (p *Printer) TranslateError(err error) string {
	if p.catalogue() == nil {
		return err.Error()
	}
	return p.Translate(message.Of(err))
}

// Translate translates a sentence made elsewhere, with the messages and errors in it.
func (p *Printer) Translate(m message.Message) string {
	if p.catalogue() == nil {
		return m.String()
	}
	return sentenceContext{p, maxNesting, false}.translateMessage(m)
}

// chineseSigns are the signs between sentences in a format without words.
var chineseSigns = strings.NewReplacer(": ", "：", "; ", "；", " (", "（", ")", "）")

// translateMessage translates m. A format that is not in the catalogue is recognized by the shape of its sentence.
func (r sentenceContext) translateMessage(m message.Message) string {
	told, known := r.table[m.Format]
	s, _ := parseShape(m.Format)
	if !known && len(m.Args) > 0 && !strings.ContainsFunc(strings.Join(s.pieces, ""), unicode.IsLetter) {
		told, known = chineseSigns.Replace(m.Format), true
	}
	if !known || len(m.Args) == 0 || r.depth == 0 {
		return r.TranslateText(m.String())
	}
	values, own := make([]string, len(m.Args)), make([]bool, len(m.Args))
	for next, rest := 0, m.Format; ; next++ {
		_, verb, after, ok := cutVerb(rest)
		if !ok {
			return fillFormat(told, values, own)
		}
		rest = after
		if verb == "%%" {
			next--
			continue
		}
		if next = argIndex(verb, next); next < len(m.Args) {
			values[next], own[next] = r.translateArg(verb, m.Args[next], s.argKind(next, told))
		}
	}
}

// translateArg translates the value that a verb formats, and reports whether it changed.
func (r sentenceContext) translateArg(verb string, arg any, kind valueKind) (string, bool) {
	if _, after, ok := strings.Cut(verb, "]"); ok {
		verb = "%" + after
	}
	m := message.New(verb, arg)
	text, said := m.String(), ""
	switch arg := arg.(type) {
	case error:
		said = r.nested().translateMessage(message.Of(arg))
	case message.Message:
		said = r.nested().translateMessage(arg)
	default:
		said = r.nested().translateValue(kind, text)
	}
	return said, said != text
}

// sentenceContext is the context of a sentence: how many more may be nested in it, and whether it is where a
// command or a name may be.
type sentenceContext struct {
	*Printer
	depth  int
	quoted bool
}

func (r sentenceContext) nested() sentenceContext {
	r.depth--
	return r
}

// translateLine translates one line: a sentence, or a combination of sentences.
func (r sentenceContext) translateLine(text string) string {
	trimmed := strings.TrimLeft(text, " \t")
	if trimmed == "" || len(text) > maxLine || r.depth == 0 {
		return text
	}
	for _, as := range []func(sentenceContext, string) (string, bool){
		sentenceContext.translateSentence, sentenceContext.translateAside, sentenceContext.translateList,
		sentenceContext.translateChain, sentenceContext.translateBracket, sentenceContext.translateEnumeration,
	} {
		if said, ok := as(r, trimmed); ok {
			return text[:len(text)-len(trimmed)] + said
		}
	}
	return text
}

// translateSentence translates text that is in the catalogue or has the shape of one of its formats.
func (r sentenceContext) translateSentence(text string) (string, bool) {
	if t, ok := r.table[text]; ok && !strings.Contains(t, "%") {
		return t, true
	}
	return r.translateShape(text, func(*shape) bool { return true })
}

// translateShape translates text that has the shape of a catalogue format for which may returns true.
func (r sentenceContext) translateShape(text string, may func(*shape) bool) (string, bool) {
	head := r.literalHead(text)
	for _, s := range r.shapes().candidates(text) {
		values, ok := s.match(text)
		told := r.table[s.format]
		if !ok || !may(s) || s.spansSentences(values, told) || !s.isOpen() && !strings.HasPrefix(s.format, head) {
			continue
		}
		own := make([]bool, len(values))
		for n, v := range values {
			values[n] = r.nested().translateValue(s.argKind(n, told), v)
			own[n] = values[n] != v
		}
		return fillFormat(told, values, own), true
	}
	return text, false
}

// literalHead returns the text before the first colon if the catalogue has it literally, so that no wider
// format takes it for a name.
func (r sentenceContext) literalHead(text string) string {
	head, _, ok := strings.Cut(text, ": ")
	if t, known := r.table[head]; !ok || !known || strings.Contains(t, "%") || !strings.Contains(head, " ") {
		return ""
	}
	return head
}

// translateValue translates the value of a verb. Names and commands stay: a single word is a sentence only in
// place of an error.
func (r sentenceContext) translateValue(what valueKind, text string) string {
	said, named := translateChoice(text)
	switch {
	case what == kindSentence:
		r.quoted = false
		if line := r.translateLine(text); line != text || !named {
			return line
		}
		return said
	case what == kindNames:
		return chineseList(text)
	case what == kindName && named, what == kindEither && named:
		return said
	case what == kindEither && strings.Contains(text, " "):
		r.quoted = true
		return r.translateLine(text)
	}
	return text
}

// chineseList separates names with the Chinese list comma.
func chineseList(names string) string { return strings.ReplaceAll(names, ", ", "、") }

// translateChoice translates the separators in a list of alternatives: auto, dark or light. The names stay.
func translateChoice(text string) (string, bool) {
	before, last, ok := strings.Cut(text, " or ")
	names := append(strings.Split(before, ", "), last)
	if !ok || slices.ContainsFunc(names, func(n string) bool { return n == "" || strings.ContainsAny(n, " ,;") }) {
		return text, false
	}
	return strings.Join(names[:len(names)-1], "、") + " 或 " + last, true
}

// translateList translates sentences separated by semicolons.
func (r sentenceContext) translateList(text string) (string, bool) {
	if !strings.Contains(text, "; ") {
		return text, false
	}
	// A sentence may contain semicolons itself and follow its subject.
	if head, tail, ok := strings.Cut(text, ": "); ok && !r.quoted && strings.Contains(tail, "; ") {
		if strings.Contains(head, " ") { // a single word is a name
			head = r.nested().translateLine(head)
		}
		if t, ok := r.table[tail]; ok && !strings.Contains(t, "%") {
			return head + "：" + t, true
		}
		if said, ok := r.nested().translateShape(tail, func(s *shape) bool { return strings.Contains(s.format, "; ") }); ok {
			return head + "：" + said, true
		}
		if said, ok := r.nested().translateShape(tail, func(s *shape) bool { return !s.isOpen() }); ok &&
			!strings.Contains(said, "; ") {
			return head + "：" + said, true
		}
	}
	var (
		b      strings.Builder
		before bool // the part before was translated
		any    bool
	)
	parts := splitSentences(text)
	sentences := !slices.ContainsFunc(parts, func(part string) bool { return r.nested().translateLine(part) == part })
	for i, part := range parts {
		said := r.nested().translateLine(part)
		known := said != part && (sentences || strings.Contains(part, " "))
		if !known {
			said = part // a word after an unknown sentence may be a command's own
		}
		switch {
		case i > 0 && known && before:
			b.WriteString("；")
		case i > 0:
			b.WriteString("; ") // may be a command's own
		}
		b.WriteString(said)
		before, any = known, any || known
	}
	return b.String(), any
}

// splitSentences splits text at semicolons outside quotes.
func splitSentences(text string) (parts []string) {
	from := 0
	for i := range text {
		if i >= from && strings.HasPrefix(text[i:], "; ") && !endsInQuotes(text[from:i]) {
			parts, from = append(parts, text[from:i]), i+2
		}
	}
	return append(parts, text[from:])
}

// endsInQuotes reports whether text ends inside quotes.
func endsInQuotes(text string) bool {
	open := rune(0)
	for _, r := range text {
		switch {
		case r == open:
			open = 0
		case open == 0 && (r == '"' || r == '`'):
			open = r
		}
	}
	return open != 0
}

// translateChain translates the text before and after a colon: errors wrap each other, and reasons begin with
// their command, which stays.
func (r sentenceContext) translateChain(text string) (string, bool) {
	from := 0
	for range maxParts {
		i := strings.Index(text[from:], ": ")
		if i < 0 {
			break
		}
		head, tail := text[:from+i], text[from+i+2:]
		if from += i + 2; endsInQuotes(head) {
			continue // quoted text stays
		}
		if said, ok := r.nested().translateSentence(head); ok && strings.Contains(head, " ") {
			if !r.quoted {
				tail = r.nested().translateLine(tail)
			}
			return said + "：" + tail, true
		}
		if after, ok := r.nested().translateSentence(tail); ok && !r.quoted {
			return translateOperation(head) + "：" + after, true
		}
	}
	return text, false
}

// fileOperations are the operations in Go's file errors.
var fileOperations = map[string]string{
	"open": "打开", "openat": "打开", "read": "读取", "write": "写入", "mkdir": "创建", "mkdirat": "创建", "rename": "改名", "remove": "删除", "unlinkat": "删除", "unlink": "删除",
	"stat": "查看", "lstat": "查看", "fstatat": "查看", "sync": "写入", "fsync": "写入", "close": "关闭", "chmod": "更改权限", "chdir": "进入", "readlink": "读取", "link": "链接", "symlink": "链接",
	"truncate": "截短", "fork/exec": "执行", "exec": "执行", "env": "环境变量",
}

// translateOperation translates the start of a file error: open /a/b. File names stay, and so do names of places and
// settings around colons.
func translateOperation(head string) string {
	said := ""
	if op, file, ok := strings.Cut(head, " "); ok && fileOperations[op] != "" {
		said, head = fileOperations[op]+" ", file
	}
	if names := strings.Split(head, ": "); !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, " ") }) {
		head = strings.Join(names, "：")
	}
	return said + head
}

// translateAside translates a sentence followed by another complete one in parentheses, as for a call refused in
// two ways: a: must be true (b: argument "c" is missing).
func (r sentenceContext) translateAside(text string) (string, bool) {
	i := strings.Index(text, " (")
	if i < 0 || r.quoted || !strings.HasSuffix(text, ")") || endsInQuotes(text[:i]) {
		return text, false
	}
	head, within := text[:i], text[i+2:len(text)-1]
	if !strings.Contains(within, ": ") {
		return text, false
	}
	said, aside := r.nested().translateLine(head), r.nested().translateLine(within)
	if said == head || aside == within {
		return text, false
	}
	return said + "（" + aside + "）", true
}

// translateBracket translates a sentence that ends with another in parentheses.
func (r sentenceContext) translateBracket(text string) (string, bool) {
	i := strings.LastIndex(text, " (")
	if i < 0 || !strings.HasSuffix(text, ")") {
		return text, false
	}
	head, within := text[:i], text[i+2:len(text)-1]
	aside, known := r.nested().translateSentence(within)
	said := r.nested().translateLine(head)
	switch {
	case known && strings.Contains(within, " "):
		return said + "（" + aside + "）", true
	case said != head:
		return said + text[i:], true
	}
	return text, false
}

// translateEnumeration translates short sentences separated by commas, if all are known.
func (r sentenceContext) translateEnumeration(text string) (string, bool) {
	parts := strings.Split(text, ", ")
	if len(parts) < 2 {
		return text, false
	}
	for i, part := range parts {
		said, ok := r.nested().translateSentence(part)
		if !ok {
			return text, false
		}
		parts[i] = said
	}
	return strings.Join(parts, "，"), true
}
