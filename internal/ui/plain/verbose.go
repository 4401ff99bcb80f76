package plain

import (
	"cmp"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
)

// maxPartialLine is how much of an unfinished line is held back.
const maxPartialLine = 4096

// detailLines returns the lines that only a verbose run prints.
func (r *Renderer) detailLines(rec event.Record) string {
	switch e := rec.Event.(type) {
	case event.ReasoningDelta:
		return r.appendStream(stream{task: rec.Task}, e.Text)
	case event.MessageAdded:
		if e.Message.Role == chat.Assistant {
			return r.flush(stream{task: rec.Task})
		}
	case event.ToolStarted:
		r.tools[stream{rec.Task, e.CallID}] = e.Tool
	case event.ToolOutput:
		return r.appendStream(stream{rec.Task, e.CallID}, e.Text)
	}
	return ""
}

// appendStream adds a piece to a stream and returns its newly complete lines.
func (r *Renderer) appendStream(s stream, piece string) string {
	b := r.streams[s]
	if b == nil {
		b = new(strings.Builder)
		r.streams[s] = b
	}
	end := strings.LastIndexByte(piece, '\n') + 1
	if end == 0 && b.Len()+len(piece) < maxPartialLine {
		b.WriteString(piece)
		return ""
	}
	if end == 0 {
		end = len(piece)
	}
	text := b.String() + piece[:end]
	b.Reset()
	b.WriteString(piece[end:])
	return r.prefixLines(s, text)
}

// flush returns a stream's unfinished line and ends the stream.
func (r *Renderer) flush(s stream) string {
	text := ""
	if b := r.streams[s]; b != nil {
		text = r.prefixLines(s, b.String())
	}
	delete(r.streams, s)
	delete(r.tools, s)
	return text
}

// prefixLines returns text, cleaned, with the name of its stream before each line.
func (r *Renderer) prefixLines(s stream, text string) string {
	name := "thinking"
	if s.call != "" {
		name = sanitize.Line(cmp.Or(r.tools[s], "output"), titleRunes)
	}
	var b strings.Builder
	for line := range strings.Lines(sanitize.Text(sanitize.Mask(text))) {
		b.WriteString("[" + name + "] " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}
