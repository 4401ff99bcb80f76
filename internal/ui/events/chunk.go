package events

import "fmt"

// A chunk is a growing text told piece by piece, each time with all of it so
// far. It keeps the line itself: what was escaped once stays in place and only
// the new piece is encoded, so a piece costs us what the piece costs, however
// long the text has become (the writer still gets all of it).
type chunk struct {
	line []byte // up to and including the content, without its closing quote
	open int    // length of line while the content is empty
}

func newChunk(name string) chunk {
	line := []byte(`{"event":"` + name + `","data":{"content":"`)
	return chunk{line: line, open: len(line)}
}

// reset begins a new text.
func (c *chunk) reset() { c.line = c.line[:c.open] }

// grow adds piece and tells it. Pieces are whole runes.
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
