package browser

import (
	"fmt"
	"net/url"
	"strings"

	"coder/internal/core/sanitize"
)

// markup is HTML made by this package. Only [el], [attr] and their like create tags and attributes;
// every other string is escaped as text.
type markup string

// attr is an attribute. The name is ours, the value may be untrusted.
type attr struct{ name, value string }

func class(names string) attr { return attr{"class", names} }

// set returns an attribute without a value if holds, else nil.
func set(name string, holds bool) any {
	if !holds {
		return nil
	}
	return attr{name, ""}
}

// escaper escapes text for HTML content and attributes.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "`", "&#96;")

// text returns s as plain text: no markup, and no characters that hide or reorder text.
func text(s string) markup { return markup(escaper.Replace(sanitize.Text(s))) }

// void lists the elements without an end tag.
var void = map[string]bool{"meta": true, "link": true, "input": true, "br": true, "hr": true}

// el returns an element with attributes and content: markup, and values that are escaped as text. The
// name is ours.
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

// join concatenates parts.
func join(parts ...any) markup {
	var b strings.Builder
	for _, part := range parts {
		put(&b, part)
	}
	return markup(b.String())
}

// address returns a path of segments with a query of key-value pairs. No segment can lead elsewhere.
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
