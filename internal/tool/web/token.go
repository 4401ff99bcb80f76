package web

import (
	"strings"

	"golang.org/x/net/html"
)

// token is a part of a page: a tag if it has a name, else text.
type token struct {
	name  string // of a tag, in lower case
	end   bool   // an end tag
	text  string // decoded
	of    string // the raw element that contains the text
	attrs []attr
}

type attr struct{ name, value string }

// attr returns the value of an attribute, and whether the tag has it.
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

// kept are the attributes that affect how to read a page.
var kept = set("href", "src", "alt", "class", "hidden", "aria-hidden", "style", "role", "start")

// raw are the elements whose content is not markup.
var raw = set("script", "style", "iframe", "noembed", "noframes", "xmp", "title", "textarea")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// scanner splits a page into tokens like a browser.
type scanner struct {
	html   *html.Tokenizer
	inside string // the current raw element
}

func scan(page string) scanner { return scanner{html: html.NewTokenizer(strings.NewReader(page))} }

// next returns the next token, or false at the end. Comments and declarations
// are skipped.
func (z *scanner) next() (token, bool) {
	for {
		switch kind := z.html.Next(); kind {
		case html.ErrorToken:
			return token{}, false
		case html.TextToken:
			return token{text: string(z.html.Text()), of: z.inside}, true
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			return z.tag(kind == html.EndTagToken), true
		}
	}
}

func (z *scanner) tag(end bool) token {
	name, more := z.html.TagName()
	t := token{name: string(name), end: end}
	for more && len(t.attrs) < len(kept) {
		var key, value []byte
		if key, value, more = z.html.TagAttr(); kept[string(key)] {
			t.attrs = append(t.attrs, attr{string(key), string(value)})
		}
	}
	if z.inside = ""; !end && raw[t.name] {
		z.inside = t.name
	}
	return t
}
