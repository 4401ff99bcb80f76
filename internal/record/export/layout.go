package export

import (
	"encoding/json"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/display"
)

// field is one thing a call says or is told: short ones fit on a line.
type field struct {
	name, text string
	kind       fieldKind
}

type fieldKind uint8

const (
	short fieldKind = iota
	long
	diff
)

// shortLimit is how many bytes fit on a line.
const shortLimit = 120

// layout takes arguments or a result apart: the fields of a JSON object in
// their order, or else the whole as one text.
func layout(text string) []field {
	fields, ok := objectFields(text)
	if !ok {
		return appendField(nil, "", text)
	}
	return fields
}

func objectFields(text string) ([]field, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var fields []field
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, false
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, false
		}
		name, _ := key.(string)
		text := string(raw)
		if value := ""; json.Unmarshal(raw, &value) == nil {
			text = value // a string, without its quotes
		}
		fields = appendField(fields, name, text)
	}
	_, err := d.Token()
	return fields, err == nil && !d.More()
}

// appendField leaves out what says nothing.
func appendField(fields []field, name, text string) []field {
	f := field{name: name, text: text}
	switch {
	case strings.TrimSpace(text) == "" || name == "ok" && text == "true":
		return fields
	case isDiff(text):
		f.kind = diff
	case name == "" || len(text) > shortLimit || strings.Contains(text, "\n"):
		f.kind = long
	}
	return append(fields, f)
}

// isDiff reports whether text is a unified diff.
func isDiff(text string) bool {
	if !strings.Contains(text, "@@ -") {
		return false
	}
	return strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "diff --git ") || strings.HasPrefix(text, "@@ -") ||
		strings.Contains(text, "\n+++ ")
}

// blockField is what a question shows.
func blockField(b display.Block) []field {
	switch b := b.(type) {
	case nil:
		return nil
	case display.Text:
		return appendField(nil, "", string(b))
	case display.Code:
		return appendField(nil, "", b.Source)
	case display.Diff:
		return []field{{text: b.Unified, kind: diff}}
	case display.Table:
		return appendField(nil, "", b.Joined("  "))
	}
	return nil
}

// headline is what a call is about, on a line: the first line of its
// first argument.
func headline(args string) string {
	fields, ok := objectFields(args)
	if !ok || len(fields) == 0 {
		return ""
	}
	line, _, _ := strings.Cut(fields[0].text, "\n")
	if runes := []rune(line); len(runes) > shortLimit {
		line = string(runes[:shortLimit]) + "…"
	}
	return line
}

// A block is a piece of Markdown: prose, a heading, or code.
type block struct {
	kind blockKind
	lang string
	text string
}

type blockKind uint8

const (
	prose blockKind = iota
	heading
	code
)

// blocks takes Markdown apart. A block of code that does not close ends with
// the text.
func blocks(text string) []block {
	var list []block
	fence, at := "", 0
	start := func(b block, from int) { list = append(list, b); list[len(list)-1].text = text[from:from] }
	for line := range strings.Lines(text) {
		mark, trimmed := fenceOf(line), strings.TrimSpace(line)
		end := at + len(line)
		switch {
		case fence == "" && mark != "":
			fence = mark
			start(block{kind: code, lang: strings.Trim(trimmed, "`~ ")}, end)
		case fence != "" && strings.HasPrefix(mark, fence) && strings.Trim(trimmed, fence[:1]) == "":
			fence = ""
		case fence == "" && headingLine(line):
			list = append(list, block{kind: heading, text: strings.TrimSpace(strings.Trim(trimmed, "#"))})
		default:
			if fence == "" && (len(list) == 0 || list[len(list)-1].kind != prose) {
				start(block{kind: prose}, at)
			}
			last := &list[len(list)-1]
			last.text = text[end-len(line)-len(last.text) : end]
		}
		at = end
	}
	return list
}

// headingLine reports whether a line is a title: up to six number signs and a
// blank.
func headingLine(line string) bool {
	rest := strings.TrimLeft(line, "#")
	n := len(line) - len(rest)
	return n > 0 && n <= 6 && strings.HasPrefix(rest, " ") && strings.TrimSpace(rest) != ""
}

// fenceOf is the row of backticks or tildes that opens or closes a block of
// code, or "".
func fenceOf(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// A span is a piece of a line: plain, in backticks, or between double stars.
type span struct {
	kind spanKind
	text string
}

type spanKind uint8

const (
	plain spanKind = iota
	codeSpan
	bold
)

// spans takes prose apart.
func spans(text string) []span {
	var list []span
	for text != "" {
		i := strings.IndexAny(text, "`*")
		if i < 0 {
			return append(list, span{plain, text})
		}
		s, n := spanAt(text[i:])
		if i > 0 {
			list = append(list, span{plain, text[:i]})
		}
		list = append(list, s)
		text = text[i+n:]
	}
	return list
}

// spanLimit is how many bytes a span may have.
const spanLimit = 2000

// spanAt is the span that text, which begins with a sign, begins with, and how
// long it is with its signs. A span ends on its line.
func spanAt(text string) (span, int) {
	line, _, _ := strings.Cut(text[:min(len(text), spanLimit)], "\n")
	sign, kind := line[:len(line)-len(strings.TrimLeft(line, line[:1]))], codeSpan
	if sign[0] == '*' {
		if len(sign) != 2 {
			return span{plain, sign}, len(sign)
		}
		kind = bold
	}
	inner, _, ok := strings.Cut(line[len(sign):], sign)
	if !ok || strings.TrimSpace(inner) == "" {
		return span{plain, sign}, len(sign)
	}
	return span{kind, inner}, 2*len(sign) + len(inner)
}

// who is a role in words.
func who(r chat.Role) string {
	switch r {
	case chat.User:
		return "User"
	case chat.Assistant:
		return "Assistant"
	case chat.System:
		return "System"
	}
	return "Tool"
}
