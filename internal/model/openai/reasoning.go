package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"coder/internal/model/jsonscan"
	"coder/internal/model/transport"
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	whiteSpace = " \t\r\n"
)

// thinkSplitter separates thinking from the answer for servers that send both as one text: a reply that
// begins with <think> is thinking up to </think>. The tags mean nothing anywhere else.
type thinkSplitter struct {
	state   splitState
	pending string // undecided text: a tag may be cut in two
}

type splitState uint8

const (
	atStart splitState = iota
	inThought
	afterThought
	inAnswer
)

// split adds the next piece of text and returns which part of the text so far, including text held
// back, is thinking and which is the answer.
func (o *thinkSplitter) split(s string) (thought, answer string) {
	if o.state == inAnswer {
		return "", s
	}
	s, o.pending = o.pending+s, ""
	if o.state == atStart {
		trimmed := strings.TrimLeft(s, whiteSpace)
		if strings.HasPrefix(thinkOpen, trimmed) && trimmed != thinkOpen {
			o.pending = s
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
			keep := partialTag(s, thinkClose)
			o.pending = s[len(s)-keep:]
			return s[:len(s)-keep], ""
		}
		thought, s, o.state = before, after, afterThought
	}
	s = strings.TrimLeft(s, whiteSpace)
	if s != "" {
		o.state = inAnswer
	}
	return thought, s
}

// flush returns the text held back once no more text comes.
func (o *thinkSplitter) flush() (thought, answer string) {
	held := o.pending
	o.pending = ""
	if o.state == inThought {
		return held, ""
	}
	return "", held
}

// partialTag returns how many bytes at the end of s may be the start of tag.
func partialTag(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}

// reasoningDetails merges reasoning_details. A block's text comes in many entries; the server wants back one
// entry per block, with every member it sent, known or not. Encrypted blocks always come whole.
type reasoningDetails []detailEntry

// detailEntry is one entry: its members as raw JSON, in order of arrival.
type detailEntry []jsonMember

type jsonMember struct {
	key string
	val []byte
}

// get returns the member called key, or nil if it is absent or null.
func (b detailEntry) get(key string) []byte {
	for _, f := range b {
		if f.key == key && !jsonscan.IsNull(f.val) {
			return f.val
		}
	}
	return nil
}

// add merges the entries of one delta and returns their texts, as
// JSON strings, and the number of bytes by which d grew.
func (d *reasoningDetails) add(raw []byte) (texts [][]byte, grown int) {
	for e := jsonscan.Elements(raw); e.Next(); {
		var b detailEntry
		m := jsonscan.Members(e.Val)
		for m.Nulls = true; m.Next(); {
			b = append(b, jsonMember{string(m.Key), bytes.Clone(m.Val)})
		}
		if len(b) == 0 {
			continue
		}
		for _, key := range []string{"text", "summary"} {
			if v := b.get(key); jsonscan.IsString(v) {
				texts = append(texts, v)
			}
		}
		at := len(*d) // the entry that b continues, or else a new one
		for i, have := range slices.Backward(*d) {
			same := func(key string) bool { return bytes.Equal(have.get(key), b.get(key)) }
			if b.get("data") == nil && have.get("data") == nil && same("type") && same("index") &&
				(same("id") || have.get("id") == nil || b.get("id") == nil) {
				at = i
				break
			}
		}
		if at == len(*d) {
			*d = append(*d, b)
		} else {
			grown -= (*d)[at].size()
			(*d)[at].merge(b)
		}
		grown += (*d)[at].size()
	}
	return texts, grown
}

// size returns the size of b in bytes.
func (b detailEntry) size() (n int) {
	for _, f := range b {
		n += len(f.key) + len(f.val)
	}
	return n
}

// merge appends text to text; any other member of more replaces the old one.
func (b *detailEntry) merge(more detailEntry) {
	for _, f := range more {
		i := slices.IndexFunc(*b, func(have jsonMember) bool { return have.key == f.key })
		switch {
		case i < 0:
			*b = append(*b, f)
		case jsonscan.IsNull(f.val):
		case (f.key == "text" || f.key == "summary") && jsonscan.IsString((*b)[i].val) && jsonscan.IsString(f.val):
			(*b)[i].val = append((*b)[i].val[:len((*b)[i].val)-1], f.val[1:]...)
		default:
			(*b)[i].val = f.val
		}
	}
}

// json returns the entries as one array, or nil if there are none.
func (d reasoningDetails) json() json.RawMessage {
	if len(d) == 0 {
		return nil
	}
	out := []byte{'['}
	for _, b := range d {
		out = append(transport.Comma(out), '{')
		for _, f := range b {
			out = append(append(append(transport.Comma(out), '"'), f.key...), `":`...)
			out = append(out, f.val...)
		}
		out = append(out, '}')
	}
	return bytes.ToValidUTF8(append(out, ']'), []byte("\uFFFD"))
}
