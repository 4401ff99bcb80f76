package export

import (
	"bytes"
	"encoding/json"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/display"
	"coder/internal/core/uip"
)

// field is a part of a call's arguments or result: short ones fit on a line.
type field struct {
	name, text string
	kind       fieldKind
}

type fieldKind uint8

const (
	shortField fieldKind = iota
	longField
	diffField
	markdownField // in Markdown
)

// maxShortField is how many bytes fit on a line.
const maxShortField = 120

// splitFields splits arguments or a result: into the fields of a
// JSON object in order, or else into the whole text.
func splitFields(text string) []field {
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
		var value string
		var indented bytes.Buffer
		switch {
		case json.Unmarshal(raw, &value) == nil:
			text = value // a string without its quotes
		case len(raw) > maxShortField && json.Indent(&indented, raw, "", "  ") == nil:
			text = indented.String()
		}
		fields = appendField(fields, name, text)
	}
	_, err := d.Token()
	return fields, err == nil && !d.More()
}

// appendField appends a field unless it is empty.
func appendField(fields []field, name, text string) []field {
	f := field{name: name, text: text}
	switch {
	case strings.TrimSpace(text) == "" || name == "ok" && text == "true":
		return fields
	case isDiff(text):
		f.kind = diffField
	case name == "plan":
		f.kind = markdownField
	case name == "" || len(text) > maxShortField || strings.Contains(text, "\n"):
		f.kind = longField
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

// questionFields returns the content of a question. What a model wrote
// for reading, such as a plan, is Markdown; code to run is not.
func (s Locale) questionFields(q uip.Request) []field {
	switch b := q.Display.Content.(type) {
	case nil:
		return nil
	case display.Text:
		if q.Purpose != uip.PurposeConfirmRiskyAction {
			return []field{{text: string(b), kind: markdownField}}
		}
		return appendField(nil, "", string(b))
	case display.Code:
		return appendField(nil, "", b.Source)
	case display.Diff:
		return []field{{text: b.Unified, kind: diffField}}
	case display.Table:
		return appendField(nil, "", s.blocksText(display.Blocks{b}))
	}
	return nil
}

// headline returns a call's title on one line: the one that the user
// saw, or else the first line of the first text in its arguments.
func (s Locale) headline(c *Call) string {
	text := c.Title
	if c.TranslateTitle {
		text = s.translateText(text)
	}
	if fields, ok := objectFields(c.Args); text == "" && ok && len(fields) > 0 {
		text = firstText(fields[0].text)
	}
	line, _, _ := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > maxShortField {
		line = string(runes[:maxShortField]) + "…"
	}
	return line
}

// firstText returns the first text in a JSON list or object, or else the text itself.
func firstText(text string) string {
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") {
		return text
	}
	type level struct{ object, value bool } // what is open, and whether the next string is a value
	var levels []level
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		t, err := d.Token()
		if err != nil {
			return text
		}
		at := len(levels) - 1
		switch t := t.(type) {
		case json.Delim:
			if t == ']' || t == '}' {
				if levels = levels[:at]; at == 0 {
					return text // no text in it
				}
				continue
			}
			if at >= 0 {
				levels[at].value = !levels[at].object
			}
			levels = append(levels, level{object: t == '{', value: t == '['})
		case string:
			if levels[at].value {
				return t
			}
			levels[at].value = true
		default:
			levels[at].value = !levels[at].object
		}
	}
}

// isHeading reports whether a line is a heading: up to six number signs and a space.
func isHeading(line string) bool {
	rest := strings.TrimLeft(line, "#")
	n := len(line) - len(rest)
	return n > 0 && n <= 6 && strings.HasPrefix(rest, " ") && strings.TrimSpace(rest) != ""
}

// parseCodeBlock reads the code block at the start of lines, and returns
// its number of lines. An unclosed block ends with the text.
func parseCodeBlock(lines []string) (lang, text string, n int) {
	fence, first := frontmatter.FenceMarker(lines[0]), strings.TrimLeft(lines[0], " ")
	indent := len(lines[0]) - len(first)
	var code []string
	for n = 1; n < len(lines); n++ {
		line := lines[n]
		if strings.HasPrefix(frontmatter.FenceMarker(line), fence) && strings.Trim(line, fence[:1]+" ") == "" {
			n++
			break
		}
		code = append(code, line[min(indent, len(line)-len(strings.TrimLeft(line, " "))):])
	}
	return strings.ToLower(strings.Trim(first, "`~ ")), strings.TrimRight(strings.Join(code, "\n"), "\n"), n
}

// maxCodeSpan is the maximum size of a code span in bytes.
const maxCodeSpan = 2000

// parseCodeSpan reads the code span at the start of text, and returns its
// length with the backticks; 0 if it does not end on its line.
func parseCodeSpan(text string) (code string, n int) {
	line, _, _ := strings.Cut(text[:min(len(text), maxCodeSpan)], "\n")
	ticks := len(line) - len(strings.TrimLeft(line, "`"))
	for end := ticks; ticks > 0; { // exactly as many as opened it
		i := strings.IndexByte(line[end:], '`')
		if i < 0 {
			break
		}
		end += i
		run := len(line[end:]) - len(strings.TrimLeft(line[end:], "`"))
		if code := line[ticks:end]; run == ticks {
			if strings.TrimSpace(code) == "" {
				break
			}
			return code, end + run
		}
		end += run
	}
	return "", 0
}
