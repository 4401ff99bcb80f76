package search

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// printer writes the matching lines of a file and those around them.
type printer struct {
	path    string
	data    []byte // the file, with plain line ends
	context int
	at      func(line []byte) int // where a matching line does so

	out    []string // of the current match
	size   int      // bytes written
	number int      // of the line at pos
	pos    int
	last   int // number of the last line written, 0 if none
}

// print writes the lines, at most as many as fit into a result. An empty group
// then stands for those that do not.
func (p *printer) print(lines []span) (h hits) {
	for i, l := range lines {
		if p.size >= maxText {
			return append(h, nil)
		}
		next := len(p.data)
		if i+1 < len(lines) {
			next = lines[i+1].from
		}
		p.number += bytes.Count(p.data[p.pos:l.from], []byte("\n"))
		p.pos = l.from
		p.before(l)
		p.line(p.number, ":", l, p.at)
		p.after(l, next)
		h, p.out = append(h, p.out), nil
	}
	return h
}

// before writes the lines of context ahead of l that are not yet written.
func (p *printer) before(l span) {
	var above []span
	for at := l.from; at > 0 && len(above) < min(p.context, p.number-1-p.last); {
		from := bytes.LastIndexByte(p.data[:at-1], '\n') + 1
		above = append(above, span{from, at - 1})
		at = from
	}
	if p.context > 0 && p.last > 0 && p.number-len(above) > p.last+1 {
		p.out = append(p.out, "--")
	}
	for i := len(above) - 1; i >= 0; i-- {
		p.line(p.number-1-i, "-", above[i], nil)
	}
}

// after writes the lines of context behind l, up to where the next match is.
func (p *printer) after(l span, next int) {
	at, number := l.to+1, p.number
	for range p.context {
		if at >= next {
			return
		}
		end := len(p.data)
		if i := bytes.IndexByte(p.data[at:], '\n'); i >= 0 {
			end = at + i
		}
		number++
		p.line(number, "-", span{at, end}, nil)
		at = end + 1
	}
}

func (p *printer) line(number int, mark string, l span, at func(line []byte) int) {
	text := p.data[l.from:l.to]
	place := 0
	if at != nil && len(text) > maxLineText {
		place = at(text)
	}
	s := fmt.Sprintf("%s%s%d%s%s", p.path, mark, number, mark, shorten(text, place))
	p.out = append(p.out, s)
	p.size += len(s) + 1
	p.last = number
}

// shorten makes a line valid UTF-8 of bearable length, with what is at a place
// in it.
func shorten(b []byte, place int) string {
	if len(b) <= maxLineText {
		return strings.ToValidUTF8(string(b), "\ufffd")
	}
	from := 0
	if place > maxLineText*3/4 {
		for from = place - maxLineText/2; from > 0 && !utf8.RuneStart(b[from]); from-- {
		}
	}
	end := from
	for n := 0; n < maxLineText && end < len(b); n++ {
		_, size := utf8.DecodeRune(b[end:])
		end += size
	}
	s := strings.ToValidUTF8(string(b[from:end]), "\ufffd")
	if from > 0 {
		s = "…" + s
	}
	if end < len(b) {
		s += "…"
	}
	return s
}
