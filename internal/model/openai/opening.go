package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	white      = " \t\r\n"
)

// opening parts the thinking from the answer of models whose server leaves the
// two in one text: a reply that begins with <think> is thinking up to
// </think>. The tags mean nothing anywhere else.
type opening struct {
	state place
	held  string // what cannot be told yet: a tag may be cut in two
}

type place uint8

const (
	atStart place = iota
	inThought
	afterThought
	inAnswer
)

// split takes the next piece of text and says what of it, and of pieces held
// back before, is thought and what is answer.
func (o *opening) split(s string) (thought, answer string) {
	if o.state == inAnswer {
		return "", s
	}
	s, o.held = o.held+s, ""
	if o.state == atStart {
		trimmed := strings.TrimLeft(s, white)
		if strings.HasPrefix(thinkOpen, trimmed) && trimmed != thinkOpen {
			o.held = s
			return "", ""
		}
		rest, tagged := strings.CutPrefix(trimmed, thinkOpen)
		if !tagged {
			o.state = inAnswer
			return "", s
		}
		o.state, s = inThought, rest
	}
	if o.state == inThought {
		before, after, closed := strings.Cut(s, thinkClose)
		if !closed {
			keep := partial(s, thinkClose)
			o.held = s[len(s)-keep:]
			return s[:len(s)-keep], ""
		}
		thought, s, o.state = before, after, afterThought
	}
	s = strings.TrimLeft(s, white)
	if s != "" {
		o.state = inAnswer
	}
	return thought, s
}

// flush gives out what was held back when no more text comes.
func (o *opening) flush() (thought, answer string) {
	held := o.held
	o.held = ""
	if o.state == inThought {
		return held, ""
	}
	return "", held
}

// partial is how many bytes at the end of s may be the start of tag.
func partial(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
