package web

import (
	"html"
	"strings"
)

// token is a piece of a page: a tag if it has a name, else text.
type token struct {
	name  string // of a tag, in lower case
	end   bool   // the tag ends an element
	text  string // decoded
	of    string // the raw element that the text is the content of
	attrs []attr
}

type attr struct{ name, value string }

// attr is the value of an attribute, and whether the tag has it.
func (t token) attr(name string) (string, bool) {
	for _, a := range t.attrs {
		if a.name == name {
			return a.value, true
		}
	}
	return "", false
}

func (t token) get(name string) string {
	v, _ := t.attr(name)
	return v
}

// kept are the attributes that say something about how to read a page.
var kept = set("href", "src", "alt", "class", "hidden", "aria-hidden", "style", "role", "start")

// raw are the elements whose content is not markup; rawText those of them whose
// content still holds character references.
var (
	raw     = set("script", "style", "iframe", "noembed", "noframes", "xmp", "title", "textarea")
	rawText = set("title", "textarea")
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// scanner cuts a page into tokens, much as browsers do: it never fails, and it
// looks at each byte a bounded number of times.
type scanner struct {
	s      string
	pos    int
	inside string // the raw element we are in
}

// next returns the next token, or false at the end. Comments and declarations
// are passed over.
func (z *scanner) next() (token, bool) {
	for z.pos < len(z.s) {
		if z.inside != "" {
			n := endOfRaw(z.s[z.pos:], z.inside)
			t := token{text: z.s[z.pos : z.pos+n], of: z.inside}
			if rawText[z.inside] {
				t.text = html.UnescapeString(t.text)
			}
			z.pos, z.inside = z.pos+n, ""
			if t.text != "" {
				return t, true
			}
			continue
		}
		rest := z.s[z.pos:]
		switch {
		case rest[0] != '<' || len(rest) < 2 || rest[1] != '!' && rest[1] != '?' && !letter(strings.TrimPrefix(rest[1:], "/")):
			n := 1 + strings.IndexByte(rest[1:], '<')
			if n == 0 {
				n = len(rest)
			}
			z.pos += n
			return token{text: html.UnescapeString(rest[:n])}, true
		case rest[1] == '!' || rest[1] == '?':
			mark := ">"
			if strings.HasPrefix(rest, "<!--") {
				mark = "-->"
			}
			i := strings.Index(rest[2:], mark)
			if i < 0 {
				return token{}, false
			}
			z.pos += 2 + i + len(mark)
		default:
			if t, ok := z.tag(); ok {
				return t, true
			}
		}
	}
	return token{}, false
}

// letter reports whether s begins with one, as the names of tags do.
func letter(s string) bool { return s != "" && s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z' }

// endOfRaw finds the end tag of a raw element, or the end of s.
func endOfRaw(s, name string) int {
	for i := 0; ; {
		j := strings.Index(s[i:], "</")
		if j < 0 {
			return len(s)
		}
		i += j
		if after := i + 2 + len(name); after <= len(s) && strings.EqualFold(s[i+2:after], name) && (after == len(s) || !nameByte(s[after])) {
			return i
		}
		i += 2
	}
}

func nameByte(c byte) bool { return c != '>' && c != '/' && !space(c) }

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// tag reads a tag. One that is not finished is dropped with all that follows.
func (z *scanner) tag() (token, bool) {
	var t token
	i := z.pos + 1
	if z.s[i] == '/' {
		t.end = true
		i++
	}
	start := i
	for i < len(z.s) && nameByte(z.s[i]) {
		i++
	}
	t.name = strings.ToLower(z.s[start:i])
	for {
		var a attr
		var done bool
		if a, i, done = z.attribute(i); done {
			break
		}
		if kept[a.name] && len(t.attrs) < len(kept) {
			t.attrs = append(t.attrs, attr{a.name, html.UnescapeString(a.value)})
		}
	}
	finished := i < len(z.s)
	z.pos = min(i+1, len(z.s))
	if finished && !t.end && raw[t.name] {
		z.inside = t.name
	}
	return t, finished
}

// attribute reads the attribute that begins at or after i. It is done at the
// end of the tag, where i is that of the ">", or at the end of the page.
func (z *scanner) attribute(i int) (a attr, next int, done bool) {
	for i < len(z.s) && (space(z.s[i]) || z.s[i] == '/') {
		i++
	}
	if i >= len(z.s) || z.s[i] == '>' {
		return a, i, true
	}
	start := i
	for i++; i < len(z.s) && z.s[i] != '=' && nameByte(z.s[i]); i++ {
	}
	a.name = strings.ToLower(z.s[start:i])
	i = z.skipSpace(i)
	if i >= len(z.s) || z.s[i] != '=' {
		return a, i, false
	}
	a.value, i = z.value(z.skipSpace(i + 1))
	return a, i, false
}

func (z *scanner) skipSpace(i int) int {
	for i < len(z.s) && space(z.s[i]) {
		i++
	}
	return i
}

// value reads an attribute's value at i.
func (z *scanner) value(i int) (string, int) {
	if i >= len(z.s) {
		return "", i
	}
	if q := z.s[i]; q == '"' || q == '\'' {
		n := strings.IndexByte(z.s[i+1:], q)
		if n < 0 {
			return "", len(z.s)
		}
		return z.s[i+1 : i+1+n], i + n + 2
	}
	start := i
	for i < len(z.s) && z.s[i] != '>' && !space(z.s[i]) {
		i++
	}
	return z.s[start:i], i
}
