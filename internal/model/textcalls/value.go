package textcalls

import (
	"encoding/json"
	"strings"

	"coder/internal/core/jsonx"
)

// parseValue reads the value at the start of text: JSON, or what models write instead, with line breaks in
// strings, other quotes, extra commas, and Python's words.
func parseValue(text string) (v, rest string, ok bool) {
	text = strings.TrimLeft(text, spaceChars)
	d := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if d.Decode(&raw) == nil {
		return string(raw), text[d.InputOffset():], true
	}
	r := looseReader{text: text}
	v, ok = r.readValue(0)
	return v, r.text, ok
}

// looseReader reads values that are almost JSON from the start of a text.
type looseReader struct{ text string }

// maxDepth is the maximum nesting depth of values.
const maxDepth = 50

func (r *looseReader) skipSpace() { r.text = strings.TrimLeft(r.text, spaceChars) }

// consume consumes s if it comes next.
func (r *looseReader) consume(s string) bool {
	r.skipSpace()
	rest, ok := strings.CutPrefix(r.text, s)
	r.text = rest
	return ok
}

func (r *looseReader) readValue(depth int) (string, bool) {
	r.skipSpace()
	switch {
	case r.text == "" || depth > maxDepth:
		return "", false
	case r.text[0] == '{':
		return r.readList("{", "}", depth, func() (string, bool) {
			key, ok := r.readKey()
			if !ok || !r.consume(":") {
				return "", false
			}
			v, ok := r.readValue(depth + 1)
			return string(jsonx.MustMarshal(key)) + ": " + v, ok
		})
	case r.text[0] == '[':
		return r.readList("[", "]", depth, func() (string, bool) { return r.readValue(depth + 1) })
	case strings.HasPrefix(r.text, "<escape>"):
		s, rest, ok := strings.Cut(r.text[len("<escape>"):], "<escape>")
		r.text = rest
		return string(jsonx.MustMarshal(s)), ok
	}
	if s, ok := r.readString(); ok {
		return string(jsonx.MustMarshal(s)), true
	}
	n := strings.IndexAny(r.text+",", ",)]}"+spaceChars)
	w := r.text[:n]
	if v, known := literals[w]; known {
		w = v
	} else if !json.Valid([]byte(w)) {
		return "", false
	}
	r.text = r.text[n:]
	return w, true
}

// readList reads items between brackets.
func (r *looseReader) readList(open, close string, depth int, item func() (string, bool)) (string, bool) {
	var items []string
	for r.consume(open); !r.consume(close); {
		v, ok := item()
		if !ok {
			return "", false
		}
		items = append(items, v)
		if !r.consume(",") {
			if !r.consume(close) {
				return "", false
			}
			break
		}
	}
	return open + strings.Join(items, ", ") + close, true
}

// readKey reads the name of a member, with or without quotes.
func (r *looseReader) readKey() (string, bool) {
	r.skipSpace()
	if s, ok := r.readString(); ok {
		return s, true
	}
	n := 0
	for n < len(r.text) && (r.text[n] == '_' || r.text[n]|0x20 >= 'a' && r.text[n]|0x20 <= 'z' || n > 0 &&
		r.text[n] >= '0' && r.text[n] <= '9') {
		n++
	}
	k := r.text[:n]
	r.text = r.text[n:]
	return k, n > 0
}

// readString reads a string with any kind of quotes.
func (r *looseReader) readString() (string, bool) {
	text := r.text
	raw := strings.HasPrefix(text, `r"`) || strings.HasPrefix(text, "r'")
	if raw {
		text = text[1:]
	}
	quote := ""
	for _, q := range []string{`"""`, "'''", `"`, "'"} {
		if strings.HasPrefix(text, q) {
			quote = q
			break
		}
	}
	if quote == "" {
		return "", false
	}
	var b strings.Builder
	for i := len(quote); i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], quote):
			r.text = text[i+len(quote):]
			return b.String(), true
		case text[i] == '\\' && !raw && i+1 < len(text):
			s, n := unescape(text[i:])
			b.WriteString(s)
			i += n - 1
		default:
			b.WriteByte(text[i])
		}
	}
	return "", false
}

// unescape decodes an escape sequence and returns its length.
func unescape(text string) (string, int) {
	n := 2
	if text[1] == 'u' && len(text) >= 6 {
		if n = 6; len(text) >= 12 && text[6:8] == `\u` {
			n = 12 // two escapes may form one rune
		}
	}
	var s string
	if json.Unmarshal([]byte(`"`+text[:n]+`"`), &s) == nil {
		return s, n
	}
	if text[1] == '\n' {
		return "", 2
	}
	if text[1] == '\'' {
		return "'", 2
	}
	return text[:2], 2
}

// literals are the literals of Python and JSON.
var literals = map[string]string{"True": "true", "False": "false", "None": "null", "true": "true", "false": "false",
	"null": "null"}
