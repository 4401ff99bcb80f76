package i18n

import (
	"slices"
	"strings"
)

// Limits of what is looked at: how deep sentences may hold sentences, how long
// a line may be that anybody wrote for people, and in how many places one is
// taken apart.
const (
	maxNesting = 8
	maxLine    = 4096
	maxParts   = 8
)

// Said translates a sentence that was made elsewhere, or several, each on a
// line of its own. What is not in the catalogue stays as it is.
func (p *Printer) Said(text string) string {
	if p.words() == nil {
		return text
	}
	if t, ok := p.table[text]; ok && !strings.Contains(t, "%") {
		return t
	}
	r := reading{p, maxNesting, false}
	if !strings.Contains(text, "\n") {
		return r.line(text)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		whole := strings.TrimSuffix(line, "\n")
		b.WriteString(r.line(whole))
		b.WriteString(line[len(whole):])
	}
	return b.String()
}

// reading is how a sentence is read: how many more may stand within it, and
// whether it stands in the place of something that may be a command or a name.
type reading struct {
	*Printer
	depth  int
	quoted bool
}

func (r reading) deeper() reading {
	r.depth--
	return r
}

// line translates one line: the sentence it is, or those it is made of.
func (r reading) line(text string) string {
	trimmed := strings.TrimLeft(text, " \t")
	if trimmed == "" || len(text) > maxLine || r.depth == 0 {
		return text
	}
	for _, as := range []func(reading, string) (string, bool){
		reading.sentence, reading.aside, reading.list, reading.chain, reading.bracket, reading.enumeration,
	} {
		if said, ok := as(r, trimmed); ok {
			return text[:len(text)-len(trimmed)] + said
		}
	}
	return text
}

// sentence translates what stands in the catalogue, or has the shape of
// something there.
func (r reading) sentence(text string) (string, bool) {
	if t, ok := r.table[text]; ok && !strings.Contains(t, "%") {
		return t, true
	}
	return r.shaped(text, func(*shape) bool { return true })
}

// shaped translates what has the shape of something in the catalogue, if it is one that
// may be.
func (r reading) shaped(text string, may func(*shape) bool) (string, bool) {
	head := r.knownHead(text)
	for _, s := range r.shapes().of(text) {
		values, ok := s.match(text)
		told := r.table[s.format]
		if !ok || !may(s) || s.reachesOut(values, told) || !s.isOpen() && !strings.HasPrefix(s.format, head) {
			continue
		}
		own := make([]bool, len(values))
		for n, v := range values {
			values[n] = r.deeper().value(s.holds(n, told), v)
			own[n] = values[n] != v
		}
		return fill(told, values, own), true
	}
	return text, false
}

// knownHead is what stands before the first colon of text, if the catalogue has it word for
// word: no wider format is to take it for a name.
func (r reading) knownHead(text string) string {
	head, _, ok := strings.Cut(text, ": ")
	if t, known := r.table[head]; !ok || !known || strings.Contains(t, "%") || !strings.Contains(head, " ") {
		return ""
	}
	return head
}

// value translates what stood in the place of a verb. Names and commands stay: a word
// that stands alone is a sentence only where an error was put.
func (r reading) value(what kind, text string) string {
	said, named := choice(text)
	switch {
	case what == sentence:
		r.quoted = false
		if line := r.line(text); line != text || !named {
			return line
		}
		return said
	case what == names:
		return listed(text)
	case what == name && named, what == either && named:
		return said
	case what == either && strings.Contains(text, " "):
		r.quoted = true
		return r.line(text)
	}
	return text
}

// listed writes names with what stands between them in Chinese.
func listed(names string) string { return strings.ReplaceAll(names, ", ", "、") }

// choice translates what stands between names of which one is to be taken: auto,
// dark or light. They stay.
func choice(text string) (string, bool) {
	before, last, ok := strings.Cut(text, " or ")
	names := append(strings.Split(before, ", "), last)
	if !ok || slices.ContainsFunc(names, func(n string) bool { return n == "" || strings.ContainsAny(n, " ,;") }) {
		return text, false
	}
	return strings.Join(names[:len(names)-1], "、") + " 或 " + last, true
}

// list translates sentences that a semicolon parts.
func (r reading) list(text string) (string, bool) {
	if !strings.Contains(text, "; ") {
		return text, false
	}
	// A sentence may have one of its own, and stand behind what it is about.
	if head, tail, ok := strings.Cut(text, ": "); ok && !r.quoted && strings.Contains(tail, "; ") {
		if strings.Contains(head, " ") { // a word that stands alone is a name
			head = r.deeper().line(head)
		}
		if t, ok := r.table[tail]; ok && !strings.Contains(t, "%") {
			return head + "：" + t, true
		}
		if said, ok := r.deeper().shaped(tail, func(s *shape) bool { return strings.Contains(s.format, "; ") }); ok {
			return head + "：" + said, true
		}
		if said, ok := r.deeper().shaped(tail, func(s *shape) bool { return !s.isOpen() }); ok && !strings.Contains(said, "; ") {
			return head + "：" + said, true
		}
	}
	var (
		b      strings.Builder
		before bool // what stands before was translated
		any    bool
	)
	parts := partsOf(text)
	sentences := !slices.ContainsFunc(parts, func(part string) bool { return r.deeper().line(part) == part })
	for i, part := range parts {
		said := r.deeper().line(part)
		known := said != part && (sentences || strings.Contains(part, " "))
		if !known {
			said = part // a word behind what is no sentence may be a command's own
		}
		switch {
		case i > 0 && known && before:
			b.WriteString("；")
		case i > 0:
			b.WriteString("; ") // it may be a command's own
		}
		b.WriteString(said)
		before, any = known, any || known
	}
	return b.String(), any
}

// partsOf are what semicolons part, outside quotes.
func partsOf(text string) (parts []string) {
	from := 0
	for i := range text {
		if i >= from && strings.HasPrefix(text[i:], "; ") && !quotes(text[from:i]) {
			parts, from = append(parts, text[from:i]), i+2
		}
	}
	return append(parts, text[from:])
}

// quotes reports whether text ends within quotes.
func quotes(text string) bool {
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

// chain translates what stands before and after a colon, as errors wrap each
// other and reasons name the command they are about, which stays.
func (r reading) chain(text string) (string, bool) {
	from := 0
	for range maxParts {
		i := strings.Index(text[from:], ": ")
		if i < 0 {
			break
		}
		head, tail := text[:from+i], text[from+i+2:]
		if from += i + 2; quotes(head) {
			continue // what stands in quotes is somebody's
		}
		if said, ok := r.deeper().sentence(head); ok && strings.Contains(head, " ") {
			if !r.quoted {
				tail = r.deeper().line(tail)
			}
			return said + "：" + tail, true
		}
		if after, ok := r.deeper().sentence(tail); ok && !r.quoted {
			return act(head) + "：" + after, true
		}
	}
	return text, false
}

// acts are what the system was asked to do with a file when it failed, as Go's errors say it.
var acts = map[string]string{
	"open": "打开", "openat": "打开", "read": "读取", "write": "写入", "mkdir": "创建", "mkdirat": "创建", "rename": "改名", "remove": "删除", "unlinkat": "删除", "unlink": "删除",
	"stat": "查看", "lstat": "查看", "fstatat": "查看", "sync": "写入", "fsync": "写入", "close": "关闭", "chmod": "更改权限", "chdir": "进入", "readlink": "读取", "link": "链接", "symlink": "链接",
	"truncate": "截短", "fork/exec": "执行", "exec": "执行", "env": "环境变量",
}

// act translates what an error of the system begins with: open /a/b. The file stays, and so
// do the names of places and settings before and behind colons.
func act(head string) string {
	said := ""
	if op, file, ok := strings.Cut(head, " "); ok && acts[op] != "" {
		said, head = acts[op]+" ", file
	}
	if names := strings.Split(head, ": "); !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, " ") }) {
		head = strings.Join(names, "：")
	}
	return said + head
}

// aside translates a sentence that is followed by a whole other one in brackets, as where a
// call is refused in two ways: a: must be true (b: argument "c" is missing).
func (r reading) aside(text string) (string, bool) {
	i := strings.Index(text, " (")
	if i < 0 || r.quoted || !strings.HasSuffix(text, ")") || quotes(text[:i]) {
		return text, false
	}
	head, within := text[:i], text[i+2:len(text)-1]
	if !strings.Contains(within, ": ") {
		return text, false
	}
	said, aside := r.deeper().line(head), r.deeper().line(within)
	if said == head || aside == within {
		return text, false
	}
	return said + "（" + aside + "）", true
}

// bracket translates a sentence that ends with another in brackets.
func (r reading) bracket(text string) (string, bool) {
	i := strings.LastIndex(text, " (")
	if i < 0 || !strings.HasSuffix(text, ")") {
		return text, false
	}
	head, within := text[:i], text[i+2:len(text)-1]
	aside, known := r.deeper().sentence(within)
	said := r.deeper().line(head)
	switch {
	case known && strings.Contains(within, " "):
		return said + "（" + aside + "）", true
	case said != head:
		return said + text[i:], true
	}
	return text, false
}

// enumeration translates short sentences that commas part, if all are known.
func (r reading) enumeration(text string) (string, bool) {
	parts := strings.Split(text, ", ")
	if len(parts) < 2 {
		return text, false
	}
	for i, part := range parts {
		said, ok := r.deeper().sentence(part)
		if !ok {
			return text, false
		}
		parts[i] = said
	}
	return strings.Join(parts, "，"), true
}
