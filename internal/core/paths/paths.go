// Package paths puts other paths in place of those of a machine.
package paths

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
)

// Map says what stands for each path. It is an [event.Masker].
type Map map[string]string

// Text is s with the paths replaced, the longest first, where they stand as paths: not in the
// middle of a longer name.
func (m Map) Text(s string) string {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(m)), func(from string) bool { return strings.Contains(s, from) }) {
		return s
	}
	longest := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var b strings.Builder
	next := 0
	for i := 0; i < len(s); i++ {
		for _, from := range longest {
			to := i + len(from)
			if len(from) < 2 || !strings.HasPrefix(s[i:], from) || to < len(s) && isNameByte(s[to]) || from[0] != '/' && i > 0 &&
				isNameByte(s[i-1]) {
				continue
			}
			b.WriteString(s[next:i])
			b.WriteString(m[from])
			next, i = to, to-1
			break
		}
	}
	return b.String() + s[next:]
}

// isNameByte reports whether c can be part of a name.
func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c >= 0x80
}

// JSON is a JSON text with the paths in its strings replaced.
func (m Map) JSON(text []byte) []byte {
	var v any
	if m.Text(string(text)) == string(text) || json.Unmarshal(text, &v) != nil {
		return text
	}
	return jsonx.MapStrings(text, m.Text)
}

// Value is what may be JSON with the paths replaced.
func (m Map) Value(s string) string {
	if strings.HasPrefix(s, "{") && json.Valid([]byte(s)) {
		return string(m.JSON([]byte(s)))
	}
	return m.Text(s)
}
