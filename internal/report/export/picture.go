package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/display"
)

// WindowUsage is how full the model's window was, request by request.
type WindowUsage struct {
	Kinds    []string // of window content
	Requests []RequestUsage
	Drops    []uint64 // records that shortened the conversation
}

// RequestUsage is one request.
type RequestUsage struct {
	Seq    uint64 // of its reply
	Tokens []int  // by kind
	Cached int    // of them, from the provider's cache
}

// The measurements of the picture.
const (
	chartWidth  = 720
	chartHeight = 180
	maxColumns  = 240 // beyond this, columns represent several requests
)

// writeChart draws the filling as columns, one per request, with a text alternative.
func (p page) writeChart(f WindowUsage) {
	if len(f.Requests) == 0 {
		return
	}
	columns := f.Requests
	if every := (len(columns) + maxColumns - 1) / maxColumns; every > 1 {
		columns = nil
		for i := every - 1; i < len(f.Requests); i += every {
			columns = append(columns, f.Requests[i])
		}
	}
	top := 1
	for _, c := range columns {
		top = max(top, c.total())
	}
	p.writeRaw("<figure class=\"window\">\n<svg role=\"img\" aria-labelledby=\"window-title window-text\" viewBox=\"0 0 ",
		strconv.Itoa(chartWidth), " ", strconv.Itoa(chartHeight), "\">\n")
	p.writeRaw("<title id=\"window-title\">", escape(p.t("What filled the context window")),
		"</title>\n<desc id=\"window-text\">", escape(p.writeChartText(f)), "</desc>\n")
	width := float64(chartWidth) / float64(len(columns))
	scale := float64(chartHeight) / float64(top)
	dropped := 0
	for i, c := range columns {
		x, y := float64(i)*width, float64(chartHeight)
		for k, n := range c.Tokens {
			if h := float64(n) * scale; h > 0 {
				y -= h
				p.writeRaw(fmt.Sprintf("<rect class=\"k%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%s</title></rect>\n", k, x, y, max(width-1, 0.5), h,
					escape(p.t("reply #%d: %s, %d tokens", c.Seq, p.translateText(f.Kinds[k]), n))))
			}
		}
		if c.Cached > 0 {
			at := float64(chartHeight) - float64(min(c.Cached, top))*scale
			p.writeRaw(fmt.Sprintf("<line class=\"cached\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x+width-1,
				at, at))
		}
		for dropped < len(f.Drops) && f.Drops[dropped] < c.Seq {
			p.writeRaw(fmt.Sprintf("<line class=\"drop\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/>\n", x, x, chartHeight))
			dropped++
		}
	}
	p.writeRaw("</svg>\n<figcaption>",
		escape(p.t("What filled the context window, one column per request; the highest has %d tokens.", top)))
	for k, name := range f.Kinds {
		if f.hasKind(k) {
			p.writeRaw(fmt.Sprintf(" <span class=\"key\"><i class=\"k%d\"></i>%s</span>", k, escape(p.translateText(name))))
		}
	}
	if slices.ContainsFunc(columns, func(c RequestUsage) bool { return c.Cached > 0 }) {
		p.writeRaw(" <span class=\"key\"><i class=\"line cached\"></i>",
			escape(p.t("read from the provider's cache up to here")), "</span>")
	}
	if len(f.Drops) > 0 {
		p.writeRaw(" <span class=\"key\"><i class=\"line drop\"></i>", escape(p.t("conversation shortened")), "</span>")
	}
	p.writeRaw("</figcaption>\n</figure>\n")
}

func (c RequestUsage) total() (n int) {
	for _, t := range c.Tokens {
		n += t
	}
	return n
}

// hasKind reports whether any request contained a kind.
func (f WindowUsage) hasKind(kind int) bool {
	for _, c := range f.Requests {
		if c.Tokens[kind] > 0 {
			return true
		}
	}
	return false
}

// writeChartText describes the picture.
func (p page) writeChartText(f WindowUsage) string {
	first, last := f.Requests[0], f.Requests[len(f.Requests)-1]
	var parts []string
	for k, name := range f.Kinds {
		if n := last.Tokens[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.translateText(name), n))
		}
	}
	text := p.t(display.Plural(len(f.Requests), "%d request. The first had %d tokens, the last %d: %s.",
		"%d requests. The first had %d tokens, the last %d: %s."), len(f.Requests), first.total(), last.total(),
		strings.Join(parts, p.t(", ")))
	if n := len(f.Drops); n > 0 {
		text += " " + p.t(display.Plural(n, "The conversation was shortened %d time.",
			"The conversation was shortened %d times."), n)
	}
	return text
}
