package rule

import (
	"cmp"
	"path/filepath"

	"coder/internal/core/secret"
	"coder/internal/policy"
	"coder/internal/tool"
)

// judgeRecords returns the objection to a tool that opens a session
// record. It applies in every mode and cannot be waived.
func (b *Book) judgeRecords(name, class string, at *rulePath) (finding, bool) {
	c := tool.ClassOf(name)
	shows := class == ClassRead && (c == tool.ClassReadFile || c == tool.ClassSearchText)
	if !at.isRecord() || shows && b.isOwnLog(at) {
		return finding{}, false
	}
	text := "coder saves session records there, and tools open only what log_path names: " + at.place
	return finding{policy.Deny, text, "records of sessions", true}, true
}

// isRecord reports whether a file is among the session records, also with links resolved.
func (s *rulePath) isRecord() bool {
	return secret.IsRecordPath(s.place) || secret.IsRecordPath(s.real())
}

// isOwnLog reports whether a file really is output that this session stored.
func (b *Book) isOwnLog(at *rulePath) bool {
	if b.Logs == nil || b.Logs() == "" {
		return false
	}
	rel, err := filepath.Rel(b.Logs(), cmp.Or(at.real(), at.place))
	return err == nil && filepath.IsLocal(rel)
}
