package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/display"
)

// Filling is how full the model's window was, request by request.
type Filling struct {
	Kinds    []string // of window content
	Requests []Column
	Drops    []uint64 // records that shortened the conversation
}

// Column is one request.
type Column struct {
	Seq    uint64 // of its reply
	Tokens []int  // by kind
	Cached int    // of them, from the provider's cache
}

// The measurements of the picture.
const (
	pictureWidth  = 720
	pictureHeight = 180
	mostColumns   = 240 // beyond this, columns represent several requests
)

// picture draws the filling as columns, one per request, with a text alternative.
func (p page) picture(f Filling) {
	if len(f.Requests) == 0 {
		return
	}
	columns := f.Requests
	if every := (len(columns) + mostColumns - 1) / mostColumns; every > 1 {
		columns = nil
		for i := every - 1; i < len(f.Requests); i += every {
			columns = append(columns, f.Requests[i])
		}
	}
	top := 1
	for _, c := range columns {
		top = max(top, c.sum())
	}
	p.raw("<figure class=\"window\">\n<svg role=\"img\" aria-labelledby=\"window-title window-text\" viewBox=\"0 0 ", strconv.Itoa(pictureWidth), " ", strconv.Itoa(pictureHeight), "\">\n")
	p.raw("<title id=\"window-title\">", escape(p.t("What filled the context window")), "</title>\n<desc id=\"window-text\">", escape(p.words(f)), "</desc>\n")
	width := float64(pictureWidth) / float64(len(columns))
	scale := float64(pictureHeight) / float64(top)
	dropped := 0
	for i, c := range columns {
		x, y := float64(i)*width, float64(pictureHeight)
		for k, n := range c.Tokens {
			if h := float64(n) * scale; h > 0 {
				y -= h
				p.raw(fmt.Sprintf("<rect class=\"k%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%s</title></rect>\n", k, x, y, max(width-1, 0.5), h,
					escape(p.t("reply #%d: %s, %d tokens", c.Seq, p.said(f.Kinds[k]), n))))
			}
		}
		if c.Cached > 0 {
			at := float64(pictureHeight) - float64(min(c.Cached, top))*scale
			p.raw(fmt.Sprintf("<line class=\"cached\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x+width-1, at, at))
		}
		for dropped < len(f.Drops) && f.Drops[dropped] < c.Seq {
			p.raw(fmt.Sprintf("<line class=\"drop\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/>\n", x, x, pictureHeight))
			dropped++
		}
	}
	p.raw("</svg>\n<figcaption>", escape(p.t("What filled the context window, one column per request; the highest has %d tokens.", top)))
	for k, name := range f.Kinds {
		if f.has(k) {
			p.raw(fmt.Sprintf(" <span class=\"key\"><i class=\"k%d\"></i>%s</span>", k, escape(p.said(name))))
		}
	}
	if slices.ContainsFunc(columns, func(c Column) bool { return c.Cached > 0 }) {
		p.raw(" <span class=\"key\"><i class=\"line cached\"></i>", escape(p.t("read from the provider's cache up to here")), "</span>")
	}
	if len(f.Drops) > 0 {
		p.raw(" <span class=\"key\"><i class=\"line drop\"></i>", escape(p.t("conversation shortened")), "</span>")
	}
	p.raw("</figcaption>\n</figure>\n")
}

func (c Column) sum() (n int) {
	for _, t := range c.Tokens {
		n += t
	}
	return n
}

// has reports whether any request contained a kind.
func (f Filling) has(kind int) bool {
	for _, c := range f.Requests {
		if c.Tokens[kind] > 0 {
			return true
		}
	}
	return false
}

// words describes the picture.
func (p page) words(f Filling) string {
	first, last := f.Requests[0], f.Requests[len(f.Requests)-1]
	var parts []string
	for k, name := range f.Kinds {
		if n := last.Tokens[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.said(name), n))
		}
	}
	text := p.t(display.Form(len(f.Requests), "%d request. The first had %d tokens, the last %d: %s.", "%d requests. The first had %d tokens, the last %d: %s."), len(f.Requests), first.sum(), last.sum(), strings.Join(parts, p.t(", ")))
	if n := len(f.Drops); n > 0 {
		text += " " + p.t(display.Form(n, "The conversation was shortened %d time.", "The conversation was shortened %d times."), n)
	}
	return text
}
