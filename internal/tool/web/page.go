package web

import (
	"net/url"
	"strconv"
	"strings"

	"coder/internal/core/sanitize"
)

const (
	// maxReadable limits the text made from a page, which may be
	// longer than the page because addresses are written out.
	maxReadable = 2 << 20
	maxLink     = 1000 // bytes of an address shown
	// minMain is how much text the main part of a page must have for the rest to be left out.
	minMain = 200
)

// document is the result of converting a page.
type document struct {
	title, text string
	cut         bool
}

// readable converts a page to text or Markdown. It omits scripts, navigation and hidden elements and,
// if the page has a main part, everything else.
func readable(source string, base *url.URL, markdown bool) document {
	drop := set(dropped...)
	for {
		p := &page{drop: drop, base: base, scan: scan(source)}
		p.markdown, p.limit = markdown, maxReadable
		p.read()
		switch {
		case p.skip.name != "": // it never ended, and swallowed the page
			delete(drop, p.skip.reason)
		case len(p.out) == 0 && p.skipped && len(drop) > 0:
			drop = nil
		default:
			text := string(p.out)
			if p.main.to-p.main.from >= minMain {
				text = strings.TrimLeft(text[p.main.from:p.main.to], "\n")
			}
			return document{title: sanitize.Line(p.title, maxTitle), text: sanitize.Text(text), cut: p.full}
		}
	}
}

// hidden is the reason for omitting hidden elements.
const hidden = "(hidden)"

// dropped are the elements without readable content.
var dropped = []string{
	hidden, "nav", "svg", "template", "canvas", "object", "video", "audio", "select", "datalist", "button", "dialog", "annotation",
}

// page reads a page's source and lays it out.
type page struct {
	writer
	scan    scanner
	base    *url.URL
	rebased bool
	title   string

	drop    map[string]bool
	skipped bool
	skip    struct {
		name, reason string // the omitted element, and why
		depth        int
	}

	link   link
	code   code
	pre    pre
	main   part
	tables []*table
}

// part is the main part of the page: at is the start of the current
// one in the output, from and to the extent of the longest one.
type part struct{ depth, at, from, to int }

func (p *page) read() {
	for !p.full {
		t, ok := p.scan.next()
		if !ok {
			break
		}
		switch {
		case p.skip.name != "" && t.name != p.skip.name: // inside an omitted element
		case p.skip.name != "" && !t.end:
			p.skip.depth++
		case p.skip.name != "":
			if p.skip.depth--; p.skip.depth == 0 {
				p.skip.name, p.skip.reason = "", ""
			}
		case t.name == "" && t.of == "title" && p.title == "":
			p.title = t.text
		case t.name == "" && t.of != "":
		case t.name == "" && p.pre.open:
			p.pre.text = append(p.pre.text, p.fitting(t.text, len(p.pre.text))...)
		case t.name == "":
			p.words(p.fitting(t.text, len(p.line)))
		case !t.end && p.leaveOut(t):
		default:
			p.tag(t)
		}
	}
	p.endPre()
	p.endRow()
	p.boundary(0)
	for p.main.depth > 0 {
		p.closeMain()
	}
}

// void are the elements that have no content.
var void = set("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")

// leaveOut decides whether to omit an element.
func (p *page) leaveOut(t token) bool {
	reason := t.name
	_, unseen := t.attr("hidden")
	style := strings.ToLower(strings.Join(strings.Fields(t.get("style")), ""))
	unseen = unseen || t.get("aria-hidden") == "true" || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
	switch {
	case t.get("role") == "navigation":
		reason = "nav"
	case unseen && t.name != "html" && t.name != "body" && t.name != "main":
		reason = hidden
	}
	if !p.drop[reason] {
		return false
	}
	p.skipped = true
	if gap, ok := blocks[t.name]; ok {
		p.boundary(gap)
	}
	if !void[t.name] && !raw[t.name] {
		p.skip.name, p.skip.reason, p.skip.depth = t.name, reason, 1
	}
	return true
}

// fitting returns as much of s as there is room for, besides gathered bytes.
func (p *page) fitting(s string, gathered int) string {
	room := max(0, p.limit-len(p.out)-gathered)
	if len(s) <= room {
		return s
	}
	p.full = true
	return strings.ToValidUTF8(s[:room], "")
}

// boundary ends a block, or a word inside a row.
func (p *page) boundary(gap int) {
	if p.row() != nil {
		p.blank = true
		return
	}
	p.end(gap)
}

// end ends a block and what is open in it. A link without text yet continues in the next block.
func (p *page) end(gap int) {
	to := p.link.to
	if to != "" && strings.TrimSpace(string(p.line[p.link.at:])) != "" {
		to = ""
	}
	p.closeInline()
	p.writer.end(gap)
	p.link = link{to: to}
}

// blocks are block elements with the space around them.
var blocks = map[string]int{
	"p": 2, "section": 2, "article": 2, "figure": 2, "details": 2, "dl": 2, "form": 2, "header": 2, "footer": 2, "aside": 2,
	"div": 1, "address": 1, "figcaption": 1, "summary": 1, "dt": 1, "dd": 1, "fieldset": 1, "legend": 1, "hgroup": 1, "center": 1,
	"body": 1, "caption": 1, "nav": 1, "noscript": 1, "option": 1, "head": 1,
}

func (p *page) tag(t token) {
	if p.pre.open {
		p.tagInPre(t)
		return
	}
	if gap, ok := blocks[t.name]; ok {
		p.boundary(gap)
		return
	}
	switch t.name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.rowToBlocks()
		p.boundary(2)
		p.heading = ""
		if !t.end && p.markdown {
			p.heading = strings.Repeat("#", int(t.name[1]-'0')) + " "
		}
	case "ul", "ol", "menu", "li", "blockquote", "pre", "hr", "main":
		p.blockTag(t)
	case "table", "tr", "td", "th", "thead", "tbody", "tfoot":
		p.tableTag(t)
	default:
		p.inlineTag(t)
	}
}

func (p *page) blockTag(t token) {
	if t.name == "li" && t.end {
		p.boundary(1)
		return
	}
	p.rowToBlocks()
	p.end(0)
	switch {
	case t.name == "li": // items follow each other closely, whatever their content
		p.writer.end(1)
		p.bullet = "- "
		if len(p.lists) == 0 {
			break
		}
		l := &p.lists[len(p.lists)-1]
		if l.ordered {
			p.bullet = strconv.Itoa(l.number) + ". "
		}
		if l.items > 0 {
			p.gap = 1
		}
		l.number++
		l.items++
	case t.name == "blockquote":
		p.end(2)
		p.quote = max(0, p.quote+map[bool]int{false: 1, true: -1}[t.end])
	case t.name == "pre" && !t.end:
		p.end(2)
		p.pre = pre{open: true, lang: language(t)}
	case t.name == "hr" && !t.end:
		p.end(2)
		p.block("---")
		p.gap = 2
	case t.name == "main" && t.end:
		p.end(2)
		p.closeMain()
	case t.name == "main":
		p.end(2)
		if p.main.depth++; p.main.depth == 1 {
			p.main.at = len(p.out)
		}
	case t.name != "ul" && t.name != "ol" && t.name != "menu":
	case t.end:
		p.writer.end(0)
		p.bullet = ""
		p.lists = p.lists[:max(len(p.lists)-1, 0)]
		p.gap = max(p.gap, p.listGap())
	default:
		p.writer.end(p.listGap())
		if n, err := strconv.Atoi(t.get("start")); len(p.lists) < maxNested {
			if err != nil || n < 0 || n > 1<<30 {
				n = 1
			}
			p.lists = append(p.lists, list{ordered: t.name == "ol", number: n})
		}
	}
}

func (p *page) closeMain() {
	if p.main.depth == 0 {
		return
	}
	if p.main.depth--; p.main.depth == 0 && len(p.out)-p.main.at > p.main.to-p.main.from {
		p.main.from, p.main.to = p.main.at, len(p.out)
	}
}
