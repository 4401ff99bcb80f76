package export

import (
	"slices"
	"strconv"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/lazy"
	"coder/internal/core/sanitize"
)

// maxNesting is the maximum nesting of lists and quotes, and of marks in a line; deeper levels are text.
const maxNesting = 8

// writeMarkdown writes Markdown. Images and raw HTML in it become text: the page loads nothing.
func (p page) writeMarkdown(text string) {
	lines := strings.Split(strings.Trim(sanitize.Text(text), "\n"), "\n")
	p.linkTargets = make(map[string]string)
	fenced, folded := false, strings.ToLower(text)
	expandListTabs(lines)
	lines = slices.DeleteFunc(lines, func(line string) bool {
		if begins := strings.TrimSpace(line); strings.HasPrefix(begins, "```") || strings.HasPrefix(begins, "~~~") {
			fenced = !fenced
		}
		place := linkDefinition().FindStringSubmatch(line)
		if fenced || place == nil || !isLinkable(place[2]) {
			return false
		}
		name := strings.ToLower(place[1])
		if strings.Count(folded, "["+name+"]") == 1 {
			return false // unreachable
		}
		p.linkTargets[name] = place[2]
		return true
	})
	p.writeBlocks(lines, 0)
}

var (
	listItemPattern  = lazy.Regexp(`^( {0,3})([-*+]|\d{1,9}[.)])( +|$)`)
	rulePattern      = lazy.Regexp(`^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$`)
	underlinePattern = lazy.Regexp(`^ {0,3}(?:={2,}|-{2,}) *$`)                                                       // of a heading
	linkDefinition   = lazy.Regexp(`^ {0,3}\[([^\]^][^\]]*)\]: +<?([^ >]+)>?(?: +(?:"[^"]*"|'[^']*'|\([^)]*\)))? *$`) // [name]: address
	hardBreak        = lazy.Regexp(`(?: {2,}|\\)\n`)                                                                  // of a line that ends with a hard line break
	breakTag         = lazy.Regexp(`(?i)^<br ?/?>`)
	tableRule        = lazy.Regexp(`^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$`)
	quoteStart       = lazy.Regexp(`^ {0,3}> ?`)
	// entity matches a character reference by name or number.
	entity = lazy.Regexp(`^&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});`)
)

// writeBlocks writes the blocks in lines.
func (p page) writeBlocks(lines []string, depth int) {
	for len(lines) > 0 {
		line, n := lines[0], 1
		switch {
		case strings.TrimSpace(line) == "":
		case isIndentedCode(line):
			n = p.writeIndentedCode(lines)
		case frontmatter.FenceMarker(line) != "":
			n = p.writeCodeBlock(lines)
		case isHeading(line):
			tag := headingTag(len(line) - len(strings.TrimLeft(line, "#")))
			p.writeRaw("<", tag, ">")
			p.writeInline(strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "#")), 0)
			p.writeRaw("</", tag, ">\n")
		case rulePattern().MatchString(line):
			p.writeRaw("<hr>\n")
		case depth < maxNesting && quoteStart().MatchString(line):
			n = p.writeQuote(lines, depth)
		case depth < maxNesting && listItemPattern().MatchString(line):
			n = p.writeList(lines, depth)
		case startsTable(lines):
			n = p.writeTable(lines)
		default:
			for n < len(lines) && !startsBlock(lines[n:]) && !underlinePattern().MatchString(lines[n]) {
				n++
			}
			text, tag := strings.TrimSpace(strings.Join(lines[:n], "\n")), "p"
			if n < len(lines) && underlinePattern().MatchString(lines[n]) {
				tag, n = headingTag(1), n+1
				if strings.Contains(lines[n-1], "-") {
					tag = headingTag(2)
				}
			}
			p.writeRaw("<", tag, ">")
			for i, line := range hardBreak().Split(text, -1) {
				if i > 0 {
					p.writeRaw("<br>") // a newline would add another line end
				}
				p.writeInline(line, 0)
			}
			p.writeRaw("</", tag, ">\n")
		}
		lines = lines[n:]
	}
}

// expandListTabs replaces the tabs that indent list lines by spaces.
func expandListTabs(lines []string) {
	fenced, list := false, false
	for i, line := range lines {
		if frontmatter.FenceMarker(line) != "" {
			fenced = !fenced
		}
		begins := strings.TrimLeft(line, " \t")
		switch {
		case fenced || begins == "":
			continue
		case listItemPattern().MatchString(begins):
			list = true
		case begins == line:
			list = false
		}
		if list {
			lines[i] = strings.ReplaceAll(line[:len(line)-len(begins)], "\t", "    ") + begins
		}
	}
}

// headingTag returns the tag for a heading level, below the page's own headings.
func headingTag(level int) string { return "h" + strconv.Itoa(min(level+2, 6)) }

// startsBlock reports whether lines begin a block that ends a paragraph.
func startsBlock(lines []string) bool {
	line := lines[0]
	return strings.TrimSpace(line) == "" || frontmatter.FenceMarker(line) != "" || isHeading(line) || rulePattern().MatchString(line) ||
		quoteStart().MatchString(line) || listItemPattern().MatchString(line) || startsTable(lines)
}

// writeCodeBlock writes a code block, and returns its number of lines.
func (p page) writeCodeBlock(lines []string) int {
	lang, source, n := parseCodeBlock(lines)
	if lang == "diff" || lang == "patch" || isDiff(source) {
		p.writeDiff(source)
		return n
	}
	p.writeRaw("<pre><code>", escaper.Replace(source), "</code></pre>\n")
	return n
}

// isIndentedCode reports whether a line that begins a block is indented code.
func isIndentedCode(line string) bool {
	return strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
}

// writeIndentedCode writes lines of indented code, and returns their number.
func (p page) writeIndentedCode(lines []string) (n int) {
	var source []string
	for i, line := range lines {
		blank := strings.TrimSpace(line) == ""
		if !blank && !isIndentedCode(line) {
			break
		}
		if !blank {
			n = i + 1
		}
		code, tab := strings.CutPrefix(line, "\t")
		if !tab {
			code = strings.TrimPrefix(line, "    ")
		}
		source = append(source, code)
	}
	p.writeRaw("<pre><code>", escaper.Replace(strings.Join(source[:n], "\n")), "</code></pre>\n")
	return n
}

// writeQuote writes a block quote.
func (p page) writeQuote(lines []string, depth int) (n int) {
	var inner []string
	for n < len(lines) {
		mark := quoteStart().FindString(lines[n])
		if mark == "" && (strings.TrimSpace(lines[n]) == "" || startsBlock(lines[n:])) {
			break
		}
		inner = append(inner, lines[n][len(mark):])
		n++
	}
	p.writeRaw("<blockquote>\n")
	p.writeBlocks(inner, depth+1)
	p.writeRaw("</blockquote>\n")
	return n
}

// writeList writes list items of one kind.
func (p page) writeList(lines []string, depth int) (n int) {
	kind := listItemPattern().FindStringSubmatch(lines[0])[2]
	end := "</ul>\n"
	if number, err := strconv.Atoi(kind[:len(kind)-1]); err == nil {
		p.writeRaw(`<ol start="`, strconv.Itoa(number), `">`, "\n")
		end = "</ol>\n"
	} else {
		p.writeRaw("<ul>\n")
	}
	for n < len(lines) {
		m := listItemPattern().FindStringSubmatch(lines[n])
		if m == nil || m[2][len(m[2])-1] != kind[len(kind)-1] || rulePattern().MatchString(lines[n]) {
			break
		}
		item, took := itemLines(lines[n:], m)
		p.writeRaw("<li>")
		p.writeBlocks(item, depth+1)
		p.writeRaw("</li>\n")
		n += took
	}
	p.writeRaw(end)
	return n
}

// itemLines returns the lines of the list item at the start of lines, without their indentation, and
// their number including following blank lines.
func itemLines(lines []string, mark []string) (item []string, took int) {
	indent := len(mark[1]) + len(mark[2]) + max(1, min(len(mark[3]), 4))
	first := lines[0][min(len(mark[0]), len(lines[0])):]
	for sign, shown := range map[string]string{"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "} {
		if rest, ok := strings.CutPrefix(first, sign); ok {
			first = shown + rest
		}
	}
	item, blank := []string{first}, false
	for took = 1; took < len(lines); took++ {
		line := lines[took]
		in := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case strings.TrimSpace(line) == "":
			blank = true
			item = append(item, "")
			continue
		case in >= len(mark[1])+2: // indented further than its mark
			line = line[min(in, indent):]
		case blank || startsBlock(lines[took:]):
			return item, took
		}
		item, blank = append(item, line), false
	}
	return item, took
}

// startsTable reports whether lines begin with a table head.
func startsTable(lines []string) bool {
	return len(lines) > 1 && strings.Contains(lines[0], "|") && strings.Contains(lines[1], "-") && tableRule().MatchString(lines[1]) &&
		len(tableCells(lines[0])) == len(tableCells(lines[1]))
}

// writeTable writes a table.
func (p page) writeTable(lines []string) (n int) {
	var classes []string
	for _, c := range tableCells(lines[1]) {
		class := ""
		switch left, right := strings.HasPrefix(c, ":"), strings.HasSuffix(c, ":"); {
		case left && right:
			class = ` class="centre"`
		case right:
			class = ` class="right"`
		}
		classes = append(classes, class)
	}
	cells := func(tag, line string) {
		of := tableCells(line)
		p.writeRaw("<tr>")
		for i, class := range classes {
			p.writeRaw("<", tag, class, ">")
			if i < len(of) {
				p.writeInline(of[i], 0)
			}
			p.writeRaw("</", tag, ">")
		}
		p.writeRaw("</tr>\n")
	}
	p.writeRaw(`<div class="table"><table>`, "\n<thead>\n")
	cells("th", lines[0])
	p.writeRaw("</thead>\n<tbody>\n")
	for n = 2; n < len(lines) && strings.Contains(lines[n], "|"); n++ {
		cells("td", lines[n])
	}
	p.writeRaw("</tbody>\n</table></div>\n")
	return n
}

// tableCells returns the cells of a table line. A bar in backticks or after a backslash is text.
func tableCells(line string) (cells []string) {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	var cell strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '|' && !quoted:
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			quoted = quoted != (c == '`')
			cell.WriteByte(c)
		}
	}
	return append(cells, strings.TrimSpace(cell.String()))
}
