package events

import "fmt"

// chunk is a growing text, sent piece by piece, each time with all of the text so far. It keeps the
// encoded line and encodes only the new piece, so that our cost for a piece does not grow with the text
// (the writer still receives all of it).
type chunk struct {
	line []byte // up to and including the content, without the closing quote
	open int    // length of line while the content is empty
}

func newChunk(name string) chunk {
	line := []byte(`{"event":"` + name + `","data":{"content":"`)
	return chunk{line: line, open: len(line)}
}

// reset starts a new text.
func (c *chunk) reset() { c.line = c.line[:c.open] }

// grow appends piece and writes the text. Pieces are whole runes.
func (c *chunk) grow(out *lines, piece string) error {
	out.buf.Reset()
	if err := out.enc.Encode(piece); err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	quoted := out.buf.Bytes()
	quoted = quoted[1 : len(quoted)-2] // without the quotes and the newline
	c.line = append(c.line, quoted...)
	told := len(c.line)
	c.line = append(c.line, `","delta":"`...)
	c.line = append(c.line, quoted...)
	c.line = append(c.line, "\"}}\n"...)
	err := out.write(c.line)
	c.line = c.line[:told]
	return err
}
