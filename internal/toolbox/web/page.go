package web

import (
	"net/url"
	"strings"
	"unicode"

	"coder/internal/textsafe"
)

const (
	// maxReadable bounds the text made of a page, which may be longer than the
	// page: addresses are written out.
	maxReadable = 2 << 20
	maxLink     = 1000 // bytes of an address that is shown
	// minMain is how much text must be in the main part of a page for the rest
	// to be left out.
	minMain = 200
)

// document is what was made of a page.
type document struct {
	title, text string
	cut         bool
}

// readable makes text or Markdown of a page. Scripts, navigation and what is
// not to be seen are left out, and if the page has a main part so is the rest.
func readable(source string, base *url.URL, markdown bool) document {
	drop := dropped()
	for {
		p := &page{drop: drop, base: base, scan: scanner{s: source}}
		p.markdown, p.limit = markdown, maxReadable
		p.read()
		switch {
		case p.skip.name != "": // it never ended, and swallowed the page
			delete(drop, p.skip.reason)
		case len(p.out) == 0 && p.skipped && len(drop) > 0:
			drop = nil
		default:
			return document{title: textsafe.Line(p.title, maxTitle), text: textsafe.Text(p.text()), cut: p.full}
		}
	}
}

// hidden is the reason for leaving out what is not to be seen.
const hidden = "(hidden)"

// dropped are the elements that hold nothing to read.
func dropped() map[string]bool {
	return set(hidden, "nav", "svg", "template", "canvas", "object", "video", "audio", "select", "datalist", "button", "dialog", "annotation")
}

// page reads the source of a page and lays it out.
type page struct {
	writer
	scan    scanner
	base    *url.URL
	rebased bool
	title   string

	drop    map[string]bool
	skipped bool
	skip    struct {
		name, reason string // the element that is left out, and why
		depth        int
	}

	link   string // the address of the link we are in, "#" if it is within the page
	linkAt int    // where in the line its text begins
	code   bool
	codeAt int
	pre    bool
	verb   []byte // the content of the preformatted block we are in
	lang   string
	tables []*table

	mainAt           int // where in the output the main part begins
	mainFrom, mainTo int // the longest main part
	mainDepth        int
}

func (p *page) read() {
	for !p.full {
		t, ok := p.scan.next()
		if !ok {
			break
		}
		switch {
		case p.skip.name != "":
			p.pass(t)
		case t.name == "":
			p.content(t)
		case !t.end && p.leaveOut(t):
		default:
			p.tag(t)
		}
	}
	p.finish()
}

func (p *page) finish() {
	p.endPre()
	p.endRow()
	p.boundary(0)
	for p.mainDepth > 0 {
		p.closeMain()
	}
}

// text is the main part, or all there is.
func (p *page) text() string {
	if p.mainTo-p.mainFrom >= minMain {
		return strings.TrimLeft(string(p.out[p.mainFrom:p.mainTo]), "\n")
	}
	return string(p.out)
}

// pass goes on to the end of the element that is left out.
func (p *page) pass(t token) {
	if t.name != p.skip.name {
		return
	}
	if !t.end {
		p.skip.depth++
		return
	}
	if p.skip.depth--; p.skip.depth == 0 {
		p.skip.name, p.skip.reason = "", ""
	}
}

// void are the elements that have no content.
var void = set("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")

// leaveOut decides whether an element is left out.
func (p *page) leaveOut(t token) bool {
	reason := t.name
	switch {
	case t.get("role") == "navigation":
		reason = "nav"
	case unseen(t) && t.name != "html" && t.name != "body" && t.name != "main":
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

func unseen(t token) bool {
	if _, ok := t.attr("hidden"); ok || t.get("aria-hidden") == "true" {
		return true
	}
	style := strings.ToLower(strings.Join(strings.Fields(t.get("style")), ""))
	return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}

func (p *page) content(t token) {
	switch {
	case t.of == "title" && p.title == "":
		p.title = t.text
	case t.of != "":
	case p.pre:
		p.verb = append(p.verb, p.fitting(t.text, len(p.verb))...)
	default:
		p.words(p.fitting(t.text, len(p.line)))
	}
}

// fitting is as much of s as there is room for, beside what was gathered.
func (p *page) fitting(s string, gathered int) string {
	room := max(0, p.limit-len(p.out)-gathered)
	if len(s) <= room {
		return s
	}
	p.full = true
	return strings.ToValidUTF8(s[:room], "")
}

// boundary ends a block, or a word if we are in a row.
func (p *page) boundary(gap int) {
	if p.row() != nil {
		p.blank = true
		return
	}
	p.end(gap)
}

// end ends a block and what is open in it. A link that has no text yet goes on
// in the next one.
func (p *page) end(gap int) {
	link := p.link
	if link != "" && strings.TrimSpace(string(p.line[p.linkAt:])) != "" {
		link = ""
	}
	p.closeInline()
	p.writer.end(gap)
	p.link, p.linkAt = link, 0
}

// Blocks, and the room that is left around them.
var blocks = map[string]int{
	"p": 2, "section": 2, "article": 2, "figure": 2, "details": 2, "dl": 2, "form": 2, "header": 2, "footer": 2, "aside": 2,
	"div": 1, "address": 1, "figcaption": 1, "summary": 1, "dt": 1, "dd": 1, "fieldset": 1, "legend": 1, "hgroup": 1, "center": 1,
	"body": 1, "caption": 1, "nav": 1, "noscript": 1, "option": 1, "head": 1,
}

func (p *page) tag(t token) {
	if p.pre {
		p.tagInPre(t)
		return
	}
	if gap, ok := blocks[t.name]; ok {
		p.boundary(gap)
		return
	}
	switch t.name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.headingTag(t)
	case "ul", "ol", "menu", "li", "blockquote", "pre", "hr", "main":
		p.blockTag(t)
	case "table", "tr", "td", "th", "thead", "tbody", "tfoot":
		p.tableTag(t)
	default:
		p.inlineTag(t)
	}
}

func (p *page) headingTag(t token) {
	p.burst()
	p.boundary(2)
	p.heading = ""
	if !t.end && p.markdown {
		p.heading = strings.Repeat("#", int(t.name[1]-'0')) + " "
	}
}

func (p *page) blockTag(t token) {
	if t.name == "li" && t.end {
		p.boundary(1)
		return
	}
	p.burst()
	p.end(0)
	switch {
	case t.name == "li":
		p.item()
	case t.name == "blockquote":
		p.end(2)
		p.quote = max(0, p.quote+map[bool]int{false: 1, true: -1}[t.end])
	case t.name == "pre" && !t.end:
		p.end(2)
		p.pre, p.lang = true, language(t)
	case t.name == "hr" && !t.end:
		p.end(2)
		p.block("---")
		p.gap = 2
	case t.name == "main":
		p.mainTag(t)
	case t.name == "ul" || t.name == "ol" || t.name == "menu":
		if t.end {
			p.closeList()
			return
		}
		p.openList(t.name == "ol", t.get("start"))
	}
}

func (p *page) mainTag(t token) {
	p.end(2)
	if t.end {
		p.closeMain()
		return
	}
	if p.mainDepth++; p.mainDepth == 1 {
		p.mainAt = len(p.out)
	}
}

func (p *page) closeMain() {
	if p.mainDepth == 0 {
		return
	}
	if p.mainDepth--; p.mainDepth == 0 && len(p.out)-p.mainAt > p.mainTo-p.mainFrom {
		p.mainFrom, p.mainTo = p.mainAt, len(p.out)
	}
}

func (p *page) tableTag(t token) {
	switch {
	case t.name == "table" && t.end:
		p.closeTable()
	case t.name == "table":
		p.closeInline()
		p.openTable()
	case t.name == "td" || t.name == "th":
		if !t.end {
			p.openCell()
		} else if p.row() != nil {
			p.endCell()
		}
	case t.name == "tr" && !t.end:
		p.closeInline()
		p.openRow()
	default:
		p.endRow()
	}
}

func (p *page) inlineTag(t token) {
	switch t.name {
	case "a":
		p.endLink()
		if !t.end {
			p.startLink(t.get("href"))
		}
	case "code", "kbd", "samp", "tt":
		p.endCode()
		if !t.end {
			p.settle()
			p.code, p.codeAt = true, len(p.line)
		}
	case "br":
		if p.row() != nil {
			p.blank = true
		} else {
			p.lineBreak()
		}
	case "img":
		p.image(t)
	case "q":
		p.words(`"`)
	case "base":
		p.rebase(t.get("href"))
	}
}

// rebase takes the address that others on the page are relative to.
func (p *page) rebase(href string) {
	u, err := p.base.Parse(strings.TrimSpace(href))
	if err == nil && href != "" && !p.rebased && (u.Scheme == "http" || u.Scheme == "https") {
		p.base, p.rebased = u, true
	}
}

// unambiguous makes an address end where its brackets do.
var unambiguous = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20")

// resolve is an address written out: "" if it is none that can be followed, "#"
// if it is on the page itself.
func (p *page) resolve(href string) string {
	href = strings.TrimSpace(href)
	if strings.HasPrefix(href, "#") {
		return "#"
	}
	u, err := p.base.Parse(href)
	if err != nil || href == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	s := unambiguous.Replace(u.String())
	if len(s) > maxLink {
		return ""
	}
	return s
}

func (p *page) startLink(href string) {
	if p.code {
		return
	}
	p.settle()
	p.link, p.linkAt = p.resolve(href), len(p.line)
}

// marks are the texts of links that lead to the heading they stand in.
var marks = set("#", "¶", "§", "🔗", "Anchor", "anchor", "Permalink")

func (p *page) endLink() {
	if p.link == "" {
		return
	}
	p.endCode()
	to := p.link
	p.link = ""
	text := strings.Join(strings.Fields(string(p.line[p.linkAt:])), " ")
	switch {
	case text == "" || to == "#" && marks[text]:
		p.line = p.line[:p.linkAt]
	case to == "#" || !p.markdown || text == to:
	default:
		p.line = append(p.line[:p.linkAt], "["+text+"]("+to+")"...)
	}
	p.watch()
}

func (p *page) endCode() {
	if !p.code {
		return
	}
	p.code = false
	text := string(p.line[p.codeAt:])
	if !p.markdown || strings.TrimSpace(text) == "" {
		return
	}
	tick := "`"
	if strings.Contains(text, tick) {
		tick = "``"
	}
	p.line = append(p.line[:p.codeAt], tick+text+tick...)
}

func (p *page) closeInline() {
	p.endLink()
	p.endCode()
}

func (p *page) image(t token) {
	alt := strings.Join(strings.Fields(t.get("alt")), " ")
	src := p.resolve(t.get("src"))
	if alt == "" {
		return
	}
	if !p.markdown || p.link != "" || p.code || src == "" || src == "#" {
		p.words(alt)
		return
	}
	p.settle()
	p.line = append(p.line, "!["+alt+"]("+src+")"...)
	p.watch()
}

// tagInPre keeps the lines of a preformatted block apart.
func (p *page) tagInPre(t token) {
	switch {
	case t.name == "pre" && t.end:
		p.endPre()
	case t.name == "br":
		p.verb = append(p.verb, '\n')
	case t.name == "code" && p.lang == "":
		p.lang = language(t)
	case t.name == "div" || t.name == "p" || t.name == "li" || t.name == "tr":
		if n := len(p.verb); n > 0 && p.verb[n-1] != '\n' {
			p.verb = append(p.verb, '\n')
		}
	}
}

// endPre writes the preformatted block, unless it holds only line numbers.
func (p *page) endPre() {
	if !p.pre {
		return
	}
	text := strings.ReplaceAll(string(p.verb), "\r\n", "\n")
	text = strings.TrimRightFunc(strings.TrimPrefix(text, "\n"), unicode.IsSpace)
	p.pre, p.verb = false, nil
	if strings.Trim(text, "0123456789 \n\t") == "" {
		return
	}
	if p.markdown {
		fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
		text = fence + p.lang + "\n" + text + "\n" + fence
	}
	p.block(text)
	p.gap = 2
}

// longestRun is how often c follows itself in s at most.
func longestRun(s string, c byte) (longest int) {
	run := 0
	for i := range len(s) {
		if run++; s[i] != c {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// language is that of a block of code, as the usual classes name it.
func language(t token) string {
	for class := range strings.FieldsSeq(t.get("class")) {
		for _, prefix := range []string{"language-", "lang-"} {
			if name, ok := strings.CutPrefix(class, prefix); ok && len(name) < 20 && !strings.ContainsFunc(name, notToken) {
				return name
			}
		}
	}
	return ""
}
