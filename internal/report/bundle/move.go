package bundle

import (
	"encoding/json"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
)

// Place is where a session lies.
type Place struct{ Session, Root, Home string }

// At is the session of the bundle in another place: under another id, and with
// the paths that it says rewritten.
func (b Bundle) At(to Place) Bundle {
	m := mover{}
	m.add(b.Root, to.Root)
	m.add(b.Home, to.Home)
	m.add(".coder/runs/"+b.Session, ".coder/runs/"+to.Session)
	records := make([]event.Record, len(b.Records))
	for i, r := range b.Records {
		r.Session, r.Event = to.Session, event.Masked(r.Event, m)
		records[i] = r
	}
	b.Session, b.Root, b.Home, b.Records = to.Session, to.Root, to.Home, records
	return b
}

// mover puts other paths in place of those of a machine.
type mover struct{ pairs [][2]string }

// add has one path become another. What is too short to be told from other words
// stays.
func (m *mover) add(from, to string) {
	from, to = strings.TrimRight(from, "/"), strings.TrimRight(to, "/")
	if len(from) > 1 && from != to && to != "" {
		m.pairs = append(m.pairs, [2]string{from, to})
	}
}

// Text is s with the paths rewritten, where they stand as paths: not in the
// middle of a longer name.
func (m mover) Text(s string) string {
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); i++ {
		for _, p := range m.pairs {
			if !strings.HasPrefix(s[i:], p[0]) || i > 0 && inName(s[i-1]) || i+len(p[0]) < len(s) && inName(s[i+len(p[0])]) {
				continue
			}
			b.WriteString(s[from:i])
			b.WriteString(p[1])
			from = i + len(p[0])
			i = from - 1
			break
		}
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// inName reports whether a name goes on with c.
func inName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c >= 0x80
}

// JSON rewrites the paths in the strings of a JSON text.
func (m mover) JSON(text []byte) []byte {
	var v any
	if m.Text(string(text)) == string(text) || json.Unmarshal(text, &v) != nil {
		return text
	}
	return jsonx.Strings(text, m.Text)
}

// Value rewrites the paths in what may be JSON.
func (m mover) Value(s string) string {
	if strings.HasPrefix(s, "{") && json.Valid([]byte(s)) {
		return string(m.JSON([]byte(s)))
	}
	return m.Text(s)
}
