package compact

import (
	"fmt"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
)

// Sizes of outputs, in bytes.
const (
	pruneThreshold = 4000 // an old output longer than this is shortened
	pruneHeadLen   = 600  // to its beginning
	pruneTailLen   = 600  // and its end
)

// pictureRemoved replaces an old picture.
const pictureRemoved = "[a picture was here; it was left out to save room]"

// Prune shortens large tool outputs before the last recent messages and drops the pictures among them. It
// does not copy unchanged messages. saved is the number of removed bytes; pruning again saves nothing.
func Prune(view []chat.Message, recent int) (pruned []chat.Message, saved int) {
	pruned = append([]chat.Message(nil), view...)
	for i := range max(0, len(view)-max(recent, 0)) {
		if view[i].Role != chat.Tool {
			continue
		}
		m, n := pruneResult(view[i])
		if n > 0 {
			pruned[i] = m
			saved += n
		}
	}
	return pruned, saved
}

func pruneResult(m chat.Message) (chat.Message, int) {
	saved := 0
	parts := make([]chat.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		switch q := p.(type) {
		case chat.ToolResult:
			short := shortenOutput(q.Text)
			saved += len(q.Text) - len(short)
			q.Text = short
			p = q
		case chat.Image:
			saved += max(1, len(q.Data))
			p = chat.Text(pictureRemoved)
		}
		parts = append(parts, p)
	}
	return chat.Message{Role: m.Role, Parts: parts}, saved
}

// shortenOutput keeps the beginning and the end of a long output, in whole
// lines if lines are short, and says what is missing and how to see it.
func shortenOutput(s string) string {
	if len(s) <= pruneThreshold {
		return s
	}
	head, tail := headOf(s, pruneHeadLen), tailOf(s, pruneTailLen)
	left := len(s) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[%d bytes of this old output were left out to save room; make the call again to see them]\n%s",
		head, left, tail)
}

// headOf returns at most n bytes from the start of s, up to a
// line end if there is one in the second half of them.
func headOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = clip.Head(s, n)
	if i := strings.LastIndexByte(s, '\n'); i > n/2 {
		return s[:i]
	}
	return s
}

// tailOf is headOf for the end of s.
func tailOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = clip.Tail(s, n)
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < n/2 {
		return s[i+1:]
	}
	return s
}
