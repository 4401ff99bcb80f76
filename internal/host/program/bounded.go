package program

import "bytes"

// Bounded keeps the beginning of a program's output.
type Bounded struct {
	bytes.Buffer
	Most int // bytes
}

func (b *Bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.Most-b.Len()))])
	return len(p), nil
}
