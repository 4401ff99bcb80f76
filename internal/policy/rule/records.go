package rule

import (
	"cmp"
	"path/filepath"

	"coder/internal/core/secret"
	"coder/internal/policy"
	"coder/internal/tool"
)

// records returns the objection to a tool that opens a session
// record. It applies in every mode and cannot be waived.
func (b *Book) records(name, class string, at *spot) (finding, bool) {
	c := tool.ClassOf(name)
	shows := class == Reads && (c == tool.ReadsFile || c == tool.SearchesText)
	if !at.inRecords() || shows && b.inOwnLogs(at) {
		return finding{}, false
	}
	text := "coder saves session records there, and tools open only what log_path names: " + at.place
	return finding{policy.Deny, text, "records of sessions", true}, true
}

// inRecords reports whether a file is among the session records, also with links resolved.
func (s *spot) inRecords() bool { return secret.InRecords(s.place) || secret.InRecords(s.real()) }

// inOwnLogs reports whether a file really is output that this session stored.
func (b *Book) inOwnLogs(at *spot) bool {
	if b.Logs == nil || b.Logs() == "" {
		return false
	}
	rel, err := filepath.Rel(b.Logs(), cmp.Or(at.real(), at.place))
	return err == nil && filepath.IsLocal(rel)
}
