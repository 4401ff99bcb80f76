package web

import (
	"strings"
	"unicode"
)

// link is the current link.
type link struct {
	address string // its address, "#" if it is on the page itself, "" if there is no link
	start   int    // start of its text in the line
}

// code is the current inline code.
type code struct {
	open  bool
	start int
}

// pre is the current preformatted block.
type pre struct {
	open bool
	text []byte
	lang string
}

func (p *page) handleInlineTag(t token) {
	switch t.name {
	case "a":
		p.endLink()
		if !t.isEnd && !p.code.open {
			p.writeSpace()
			p.link = link{address: p.resolve(t.attrValue("href")), start: len(p.line)}
		}
	case "code", "kbd", "samp", "tt":
		p.endCode()
		if !t.isEnd {
			p.writeSpace()
			p.code = code{open: true, start: len(p.line)}
		}
	case "br":
		if p.openTable() != nil {
			p.pendingSpace = true
		} else {
			p.pendingSpace = false // next line of the same block
			if len(p.line) > 0 {
				p.line = append(p.line, '\n')
			}
		}
	case "img":
		alt, src := strings.Join(strings.Fields(t.attrValue("alt")), " "), p.resolve(t.attrValue("src"))
		switch {
		case alt == "":
		case !p.markdown || p.link.address != "" || p.code.open || src == "" || src == "#":
			p.writeText(alt)
		default:
			p.writeSpace()
			p.line = append(p.line, "!["+alt+"]("+src+")"...)
			p.checkLimit()
		}
	case "q":
		p.writeText(`"`)
	case "base": // the base of relative addresses on the page
		href := t.attrValue("href")
		u, err := p.base.Parse(strings.TrimSpace(href))
		if err == nil && href != "" && !p.hasBase && (u.Scheme == "http" || u.Scheme == "https") {
			p.base, p.hasBase = u, true
		}
	}
}

// addressEscaper escapes characters that would end an address in brackets.
var addressEscaper = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20")

// resolve returns an absolute address, "" if it cannot be followed, or "#" if it is on the page itself.
func (p *page) resolve(href string) string {
	href = strings.TrimSpace(href)
	if strings.HasPrefix(href, "#") {
		return "#"
	}
	u, err := p.base.Parse(href)
	if err != nil || href == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	s := addressEscaper.Replace(u.String())
	if len(s) > maxLink {
		return ""
	}
	return s
}

// permalinkTexts are the texts of links that lead to their own heading.
var permalinkTexts = stringSet("#", "¶", "§", "🔗", "Anchor", "anchor", "Permalink")

func (p *page) endLink() {
	if p.link.address == "" {
		return
	}
	p.endCode()
	to := p.link.address
	p.link.address = ""
	text := strings.Join(strings.Fields(string(p.line[p.link.start:])), " ")
	switch {
	case text == "" || to == "#" && permalinkTexts[text]:
		p.line = p.line[:p.link.start]
	case to == "#" || !p.markdown || text == to:
	default:
		p.line = append(p.line[:p.link.start], "["+text+"]("+to+")"...)
	}
	p.checkLimit()
}

func (p *page) endCode() {
	if !p.code.open {
		return
	}
	p.code.open = false
	text := string(p.line[p.code.start:])
	if !p.markdown || strings.TrimSpace(text) == "" {
		return
	}
	tick := "`"
	if strings.Contains(text, tick) {
		tick = "``"
	}
	p.line = append(p.line[:p.code.start], tick+text+tick...)
}

func (p *page) closeInline() {
	p.endLink()
	p.endCode()
}

// handlePreTag keeps line breaks in a preformatted block.
func (p *page) handlePreTag(t token) {
	switch {
	case t.name == "pre" && t.isEnd:
		p.endPre()
	case t.name == "br":
		p.pre.text = append(p.pre.text, '\n')
	case t.name == "code" && p.pre.lang == "":
		p.pre.lang = language(t)
	case t.name == "div" || t.name == "p" || t.name == "li" || t.name == "tr":
		if n := len(p.pre.text); n > 0 && p.pre.text[n-1] != '\n' {
			p.pre.text = append(p.pre.text, '\n')
		}
	}
}

// endPre writes the preformatted block, unless it has only line numbers.
func (p *page) endPre() {
	if !p.pre.open {
		return
	}
	text := strings.ReplaceAll(string(p.pre.text), "\r\n", "\n")
	text = strings.TrimRightFunc(strings.TrimPrefix(text, "\n"), unicode.IsSpace)
	lang := p.pre.lang
	p.pre = pre{}
	if strings.Trim(text, "0123456789 \n\t") == "" {
		return
	}
	if p.markdown {
		fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
		text = fence + lang + "\n" + text + "\n" + fence
	}
	p.writeBlock(text)
	p.pendingBreaks = 2
}

// longestRun returns the length of the longest run of c in s.
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

// language returns the language of a code block from its usual classes.
func language(t token) string {
	for class := range strings.FieldsSeq(t.attrValue("class")) {
		for _, prefix := range []string{"language-", "lang-"} {
			if name, ok := strings.CutPrefix(class, prefix); ok && len(name) < 20 && !strings.ContainsFunc(name, isNotToken) {
				return name
			}
		}
	}
	return ""
}

const maxCells = 256 // of a row; the rest is dropped

// table is an open table. A layout table, recognized by the content of its cells, is not shown as a table.
type table struct {
	rows   int
	inRow  bool
	inCell bool
	layout bool
	cells  []string
	size   int // bytes in cells
}

// openTable returns the table whose row is open, or nil.
func (p *page) openTable() *table {
	if n := len(p.tables); n > 0 && p.tables[n-1].inRow {
		return p.tables[n-1]
	}
	return nil
}

func (p *page) handleTableTag(t token) {
	n := len(p.tables)
	switch {
	case t.name == "table" && t.isEnd:
		p.endRow()
		p.tables = p.tables[:max(n-1, 0)]
		p.endBlock(2)
	case t.name == "table":
		p.closeInline()
		p.splitRow()
		p.endBlock(2)
		if n < maxNested {
			p.tables = append(p.tables, new(table))
		}
	case t.name == "td" || t.name == "th":
		if !t.isEnd {
			p.openCell()
		} else if p.openTable() != nil {
			p.endCell()
		}
	case t.name == "tr" && !t.isEnd:
		p.closeInline()
		p.openRow()
	default:
		p.endRow()
	}
}

func (p *page) openRow() {
	p.endRow()
	p.endBlock(1)
	if n := len(p.tables); n > 0 && !p.tables[n-1].layout {
		p.tables[n-1].inRow = true
	}
}

func (p *page) openCell() {
	n := len(p.tables)
	if n == 0 || p.tables[n-1].layout {
		p.breakBlock(1)
		return
	}
	if p.openTable() == nil {
		p.openRow()
	}
	p.endCell()
	p.tables[n-1].inCell = true
}

// endCell saves the text of the cell.
func (p *page) endCell() {
	t := p.openTable()
	if t == nil {
		return
	}
	p.closeInline()
	text := strings.Join(strings.Fields(string(p.line)), " ")
	p.line, p.pendingSpace = p.line[:0], false
	if !t.inCell && text == "" || len(t.cells) == maxCells {
		return
	}
	t.cells = append(t.cells, text)
	t.inCell = false
	t.size += len(text)
	p.full = p.full || len(p.out)+t.size > p.limit
}

// endRow writes the row.
func (p *page) endRow() {
	p.endCell()
	t := p.openTable()
	if t == nil {
		return
	}
	cells := t.cells
	t.cells, t.size, t.inRow = nil, 0, false
	if strings.Join(cells, "") == "" {
		return
	}
	if len(cells) == 1 && t.rows == 0 { // no table so far
		p.writeBlock(cells[0])
		return
	}
	if t.rows == 0 {
		p.pendingBreaks = 2
	}
	t.rows++
	if !p.markdown {
		p.writeBlock(strings.Join(cells, " | "))
		return
	}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	p.writeBlock("| " + strings.Join(cells, " | ") + " |")
	if t.rows == 1 {
		p.writeBlock("|" + strings.Repeat(" --- |", len(cells)))
	}
}

// splitRow turns the cells of a row into blocks if they have more than a line of text.
func (p *page) splitRow() {
	t := p.openTable()
	if t == nil {
		return
	}
	p.endCell()
	for _, c := range t.cells {
		if c != "" {
			p.writeBlock(c)
		}
	}
	t.cells, t.size, t.inRow, t.layout = nil, 0, false, true
}
