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
	truncated   bool
}

// convertPage converts a page to text or Markdown. It omits scripts, navigation and hidden elements and,
// if the page has a main part, everything else.
func convertPage(source string, base *url.URL, markdown bool) document {
	drop := stringSet(droppedElements...)
	for {
		p := &page{droppedTags: drop, base: base, scanner: newScanner(source)}
		p.markdown, p.limit = markdown, maxReadable
		p.convert()
		switch {
		case p.skipping.name != "": // it never ended, and swallowed the page
			delete(drop, p.skipping.reason)
		case len(p.out) == 0 && p.hasSkipped && len(drop) > 0:
			drop = nil
		default:
			text := string(p.out)
			if p.main.to-p.main.from >= minMain {
				text = strings.TrimLeft(text[p.main.from:p.main.to], "\n")
			}
			return document{title: sanitize.Line(p.title, maxTitle), text: sanitize.Text(text), truncated: p.full}
		}
	}
}

// hiddenReason is the reason for omitting hidden elements.
const hiddenReason = "(hidden)"

// droppedElements are the elements without readable content.
var droppedElements = []string{
	hiddenReason, "nav", "svg", "template", "canvas", "object", "video", "audio", "select", "datalist", "button", "dialog",
	"annotation",
}

// page reads a page's source and lays it out.
type page struct {
	writer
	scanner scanner
	base    *url.URL
	hasBase bool
	title   string

	droppedTags map[string]bool
	hasSkipped  bool
	skipping    struct {
		name, reason string // the omitted element, and why
		depth        int
	}

	link   link
	code   code
	pre    pre
	main   mainPart
	tables []*table
}

// mainPart is the main part of the page: at is the start of the current
// one in the output, from and to the extent of the longest one.
type mainPart struct{ depth, start, from, to int }

func (p *page) convert() {
	for !p.full {
		t, ok := p.scanner.next()
		if !ok {
			break
		}
		switch {
		case p.skipping.name != "" && t.name != p.skipping.name: // inside an omitted element
		case p.skipping.name != "" && !t.isEnd:
			p.skipping.depth++
		case p.skipping.name != "":
			if p.skipping.depth--; p.skipping.depth == 0 {
				p.skipping.name, p.skipping.reason = "", ""
			}
		case t.name == "" && t.rawElement == "title" && p.title == "":
			p.title = t.text
		case t.name == "" && t.rawElement != "":
		case t.name == "" && p.pre.open:
			p.pre.text = append(p.pre.text, p.fitText(t.text, len(p.pre.text))...)
		case t.name == "":
			p.writeText(p.fitText(t.text, len(p.line)))
		case !t.isEnd && p.skipElement(t):
		default:
			p.handleTag(t)
		}
	}
	p.endPre()
	p.endRow()
	p.breakBlock(0)
	for p.main.depth > 0 {
		p.closeMain()
	}
}

// voidElements are the elements that have no content.
var voidElements = stringSet("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
	"track", "wbr")

// skipElement decides whether to omit an element.
func (p *page) skipElement(t token) bool {
	reason := t.name
	_, unseen := t.attr("hidden")
	style := strings.ToLower(strings.Join(strings.Fields(t.attrValue("style")), ""))
	unseen = unseen || t.attrValue("aria-hidden") == "true" || strings.Contains(style, "display:none") ||
		strings.Contains(style, "visibility:hidden")
	switch {
	case t.attrValue("role") == "navigation":
		reason = "nav"
	case unseen && t.name != "html" && t.name != "body" && t.name != "main":
		reason = hiddenReason
	}
	if !p.droppedTags[reason] {
		return false
	}
	p.hasSkipped = true
	if gap, ok := blockGaps[t.name]; ok {
		p.breakBlock(gap)
	}
	if !voidElements[t.name] && !rawElements[t.name] {
		p.skipping.name, p.skipping.reason, p.skipping.depth = t.name, reason, 1
	}
	return true
}

// fitText returns as much of s as there is room for, besides gathered bytes.
func (p *page) fitText(s string, gathered int) string {
	room := max(0, p.limit-len(p.out)-gathered)
	if len(s) <= room {
		return s
	}
	p.full = true
	return strings.ToValidUTF8(s[:room], "")
}

// breakBlock ends a block, or a word inside a row.
func (p *page) breakBlock(gap int) {
	if p.openTable() != nil {
		p.pendingSpace = true
		return
	}
	p.endBlock(gap)
}

// endBlock ends a block and what is open in it. A link without text yet continues in the next block.
func (p *page) endBlock(gap int) {
	to := p.link.address
	if to != "" && strings.TrimSpace(string(p.line[p.link.start:])) != "" {
		to = ""
	}
	p.closeInline()
	p.writer.flushBlock(gap)
	p.link = link{address: to}
}

// blockGaps are block elements with the space around them.
var blockGaps = map[string]int{
	"p": 2, "section": 2, "article": 2, "figure": 2, "details": 2, "dl": 2, "form": 2, "header": 2, "footer": 2,
	"aside": 2,
	"div":   1, "address": 1, "figcaption": 1, "summary": 1, "dt": 1, "dd": 1, "fieldset": 1, "legend": 1, "hgroup": 1,
	"center": 1,
	"body":   1, "caption": 1, "nav": 1, "noscript": 1, "option": 1, "head": 1,
}

func (p *page) handleTag(t token) {
	if p.pre.open {
		p.handlePreTag(t)
		return
	}
	if gap, ok := blockGaps[t.name]; ok {
		p.breakBlock(gap)
		return
	}
	switch t.name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.splitRow()
		p.breakBlock(2)
		p.heading = ""
		if !t.isEnd && p.markdown {
			p.heading = strings.Repeat("#", int(t.name[1]-'0')) + " "
		}
	case "ul", "ol", "menu", "li", "blockquote", "pre", "hr", "main":
		p.handleBlockTag(t)
	case "table", "tr", "td", "th", "thead", "tbody", "tfoot":
		p.handleTableTag(t)
	default:
		p.handleInlineTag(t)
	}
}

func (p *page) handleBlockTag(t token) {
	if t.name == "li" && t.isEnd {
		p.breakBlock(1)
		return
	}
	p.splitRow()
	p.endBlock(0)
	switch {
	case t.name == "li": // items follow each other closely, whatever their content
		p.writer.flushBlock(1)
		p.bullet = "- "
		if len(p.lists) == 0 {
			break
		}
		l := &p.lists[len(p.lists)-1]
		if l.ordered {
			p.bullet = strconv.Itoa(l.number) + ". "
		}
		if l.items > 0 {
			p.pendingBreaks = 1
		}
		l.number++
		l.items++
	case t.name == "blockquote":
		p.endBlock(2)
		p.quoteDepth = max(0, p.quoteDepth+map[bool]int{false: 1, true: -1}[t.isEnd])
	case t.name == "pre" && !t.isEnd:
		p.endBlock(2)
		p.pre = pre{open: true, lang: language(t)}
	case t.name == "hr" && !t.isEnd:
		p.endBlock(2)
		p.writeBlock("---")
		p.pendingBreaks = 2
	case t.name == "main" && t.isEnd:
		p.endBlock(2)
		p.closeMain()
	case t.name == "main":
		p.endBlock(2)
		if p.main.depth++; p.main.depth == 1 {
			p.main.start = len(p.out)
		}
	case t.name != "ul" && t.name != "ol" && t.name != "menu":
	case t.isEnd:
		p.writer.flushBlock(0)
		p.bullet = ""
		p.lists = p.lists[:max(len(p.lists)-1, 0)]
		p.pendingBreaks = max(p.pendingBreaks, p.listGap())
	default:
		p.writer.flushBlock(p.listGap())
		if n, err := strconv.Atoi(t.attrValue("start")); len(p.lists) < maxNested {
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
	if p.main.depth--; p.main.depth == 0 && len(p.out)-p.main.start > p.main.to-p.main.from {
		p.main.from, p.main.to = p.main.start, len(p.out)
	}
}
