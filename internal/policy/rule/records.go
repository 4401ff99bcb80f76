package rule

import (
	"path/filepath"

	"coder/internal/core/secret"
	"coder/internal/policy"
	"coder/internal/tool"
)

// records is what is said against a use of the records of sessions by a tool
// that opens files. It holds in every mode, and nobody can waive it.
func (b *Book) records(name, class, target string) (finding, bool) {
	place := b.place(target)
	c := tool.ClassOf(name)
	shows := class == Reads && (c == tool.ReadsFile || c == tool.SearchesText)
	if !b.inRecords(place) || shows && b.inOwnLogs(place) {
		return finding{}, false
	}
	text := "coder keeps records of sessions there, and tools open only what log_path names: " + place
	return finding{policy.Deny, text, "records of sessions", true}, true
}

// inRecords reports whether a file lies among the records of sessions, also once
// links are followed.
func (b *Book) inRecords(place string) bool {
	return secret.InRecords(place) || secret.InRecords(b.real(place))
}

// inOwnLogs reports whether a file really is output that this session kept.
func (b *Book) inOwnLogs(place string) bool {
	if b.Logs == nil || b.Logs() == "" {
		return false
	}
	if real := b.real(place); real != "" {
		place = b.place(real)
	}
	rel, err := filepath.Rel(b.Logs(), place)
	return err == nil && filepath.IsLocal(rel)
}
