package events

import "coder/internal/core/message"

// chunk is a growing text, sent piece by piece, each time with all of the text so far. It keeps the
// encoded line and encodes only the new piece, so that our cost for a piece does not grow with the text
// (the writer still receives all of it).
type chunk struct {
	start string
	full  [][]byte // the start of the line, in blocks
	line  []byte   // the rest up to and including the content, without the closing quote
}

// blockLen is the length from which the start of a line becomes a block. A long line is written in blocks
// since a slice that grows would hold it twice.
const blockLen = 64 << 10

func newChunk(name string) chunk {
	return chunk{start: `{"event":"` + name + `","data":{"content":"`}
}

// reset starts a new text.
func (c *chunk) reset() { c.full, c.line = nil, c.line[:0] }

func (c *chunk) empty() bool { return len(c.line) <= len(c.start) && c.full == nil }

// appendText appends piece and writes the text. Pieces are whole runes.
func (c *chunk) appendText(out *objectWriter, piece string) error {
	defer out.clear()
	if err := out.enc.Encode(piece); err != nil {
		return message.Errorf("encode event: %w", err)
	}
	quoted := out.buf.Bytes()
	quoted = quoted[1 : len(quoted)-2] // without the quotes and the newline
	if len(c.line) == 0 && c.full == nil {
		c.line = append(c.line, c.start...)
	}
	c.line = append(c.line, quoted...)
	for _, block := range c.full {
		if _, err := out.w.Write(block); err != nil {
			return message.Errorf("write event: %w", err)
		}
	}
	sent := len(c.line)
	c.line = append(c.line, `","delta":"`...)
	c.line = append(c.line, quoted...)
	c.line = append(c.line, "\"}}\n"...)
	err := out.writeLine(c.line)
	if c.line = c.line[:sent]; sent > blockLen {
		c.full, c.line = append(c.full, c.line), make([]byte, 0, blockLen/4)
	}
	return err
}
