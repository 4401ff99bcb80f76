package browser

import (
	"fmt"
	"net/url"
	"strings"

	"coder/internal/core/sanitize"
)

// markup is HTML made by this package. Only [element], [attr] and their like create tags and attributes;
// every other string is escaped as text.
type markup string

// attr is an attribute. The name is ours, the value may be untrusted.
type attr struct{ name, value string }

func classAttr(names string) attr { return attr{"class", names} }

// boolAttr returns an attribute without a value if holds, else nil.
func boolAttr(name string, holds bool) any {
	if !holds {
		return nil
	}
	return attr{name, ""}
}

// escaper escapes text for HTML content and attributes.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "`", "&#96;")

// escapeText returns s as plain text: no markup, and no characters that hide or reorder text.
func escapeText(s string) markup { return markup(escaper.Replace(sanitize.Text(s))) }

// voidElements lists the elements without an end tag.
var voidElements = map[string]bool{"meta": true, "link": true, "input": true, "br": true, "hr": true}

// element returns an element with attributes and content: markup, and values that are escaped as text. The
// name is ours.
func element(name string, parts ...any) markup {
	var head, body strings.Builder
	for _, part := range parts {
		if a, ok := part.(attr); ok {
			head.WriteString(" " + a.name + `="` + string(escapeText(a.value)) + `"`)
			continue
		}
		writePart(&body, part)
	}
	if voidElements[name] {
		return markup("<" + name + head.String() + ">")
	}
	return markup("<" + name + head.String() + ">" + body.String() + "</" + name + ">")
}

func writePart(b *strings.Builder, part any) {
	switch part := part.(type) {
	case nil:
	case markup:
		b.WriteString(string(part))
	case []markup:
		for _, m := range part {
			b.WriteString(string(m))
		}
	case string:
		b.WriteString(string(escapeText(part)))
	default:
		b.WriteString(string(escapeText(fmt.Sprint(part))))
	}
}

// joinParts concatenates parts.
func joinParts(parts ...any) markup {
	var b strings.Builder
	for _, part := range parts {
		writePart(&b, part)
	}
	return markup(b.String())
}

// buildPath returns a path of segments with a query of key-value pairs. No segment can lead elsewhere.
func buildPath(base string, segments []string, query ...string) string {
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
