package browser

import (
	"fmt"
	"net/url"
	"strings"

	"coder/internal/core/sanitize"
)

// markup is HTML that was made here. Tags and attributes come from [el], [attr]
// and their like alone; every string that is put among them is text, whatever it
// looks like.
type markup string

// attr is an attribute. Its name is ours, its value may be anybody's.
type attr struct{ name, value string }

func class(names string) attr { return attr{"class", names} }

// set is an attribute that has no value, where it holds.
func set(name string, holds bool) any {
	if !holds {
		return nil
	}
	return attr{name, ""}
}

// escaper replaces what HTML would take for markup, in text and in attributes.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "`", "&#96;")

// text is s as nothing but text: no markup, and no character that hides or
// reorders.
func text(s string) markup { return markup(escaper.Replace(sanitize.Text(s))) }

// void are the elements that have no end.
var void = map[string]bool{"meta": true, "link": true, "input": true, "br": true, "hr": true}

// el is an element of attributes and of what stands in it: elements, and values
// that are written as text. The name is ours.
func el(name string, parts ...any) markup {
	var head, body strings.Builder
	for _, part := range parts {
		if a, ok := part.(attr); ok {
			head.WriteString(" " + a.name + `="` + string(text(a.value)) + `"`)
			continue
		}
		put(&body, part)
	}
	if void[name] {
		return markup("<" + name + head.String() + ">")
	}
	return markup("<" + name + head.String() + ">" + body.String() + "</" + name + ">")
}

func put(b *strings.Builder, part any) {
	switch part := part.(type) {
	case nil:
	case markup:
		b.WriteString(string(part))
	case []markup:
		for _, m := range part {
			b.WriteString(string(m))
		}
	case string:
		b.WriteString(string(text(part)))
	default:
		b.WriteString(string(text(fmt.Sprint(part))))
	}
}

// join is parts one after the other.
func join(parts ...any) markup {
	var b strings.Builder
	for _, part := range parts {
		put(&b, part)
	}
	return markup(b.String())
}

// address is a path of segments, and of pairs of a query. Nothing in a segment
// can lead elsewhere.
func address(base string, segments []string, query ...string) string {
	for _, s := range segments {
		base += "/" + url.PathEscape(s)
	}
	if len(query) == 0 {
		return base
	}
	v := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		v.Set(query[i], query[i+1])
	}
	return base + "?" + v.Encode()
}
