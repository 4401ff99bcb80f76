package web

import (
	"strings"

	"golang.org/x/net/html"
)

// token is a part of a page: a tag if it has a name, else text.
type token struct {
	name       string // of a tag, in lower case
	isEnd      bool   // an end tag
	text       string // decoded
	rawElement string // the raw element that contains the text
	attrs      []attr
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

func (t token) attrValue(name string) string {
	v, _ := t.attr(name)
	return v
}

// keptAttrs are the attributes that affect how to read a page.
var keptAttrs = stringSet("href", "src", "alt", "class", "hidden", "aria-hidden", "style", "role", "start")

// rawElements are the elements whose content is not markup.
var rawElements = stringSet("script", "style", "iframe", "noembed", "noframes", "xmp", "title", "textarea")

func stringSet(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// scanner splits a page into tokens like a browser.
type scanner struct {
	html       *html.Tokenizer
	rawElement string // the current raw element
}

func newScanner(page string) scanner {
	return scanner{html: html.NewTokenizer(strings.NewReader(page))}
}

// next returns the next token, or false at the end. Comments and declarations
// are skipped.
func (z *scanner) next() (token, bool) {
	for {
		switch kind := z.html.Next(); kind {
		case html.ErrorToken:
			return token{}, false
		case html.TextToken:
			return token{text: string(z.html.Text()), rawElement: z.rawElement}, true
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			return z.readTag(kind == html.EndTagToken), true
		}
	}
}

func (z *scanner) readTag(end bool) token {
	name, more := z.html.TagName()
	t := token{name: string(name), isEnd: end}
	for more && len(t.attrs) < len(keptAttrs) {
		var key, value []byte
		if key, value, more = z.html.TagAttr(); keptAttrs[string(key)] {
			t.attrs = append(t.attrs, attr{string(key), string(value)})
		}
	}
	if z.rawElement = ""; !end && rawElements[t.name] {
		z.rawElement = t.name
	}
	return t
}
