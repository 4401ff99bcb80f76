package browser

import (
	"encoding/json"
	"strconv"
	"strings"

	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/report/export"
)

func formatUint(n uint64) string { return strconv.FormatUint(n, 10) }

// oneLine makes untrusted text fit for one line of a list.
func oneLine(s string) string { return sanitize.Line(s, 400) }

// highlight returns s on one line, with words highlighted.
func highlight(s string, words []string) markup {
	folded := strings.ToLower(s)
	if len(folded) != len(s) { // lower case has another length
		return escapeText(s)
	}
	var all []any
	for s != "" {
		at, long := -1, 0
		for _, w := range words {
			if i := strings.Index(folded, strings.ToLower(w)); w != "" && i >= 0 && (at < 0 || i < at) {
				at, long = i, len(w)
			}
		}
		if at < 0 || long > len(s)-at {
			break
		}
		all = append(all, s[:at], element("mark", s[at:at+long]))
		s, folded = s[at+long:], folded[at+long:]
	}
	return joinParts(append(all, s)...)
}

// renderMarkdown renders Markdown for the page, without anything that loads or runs.
func renderMarkdown(s string) markup {
	return element("div", classAttr("prose"), markup(export.Fragment(s)))
}

// renderBlocks renders blocks one below the other.
func (p *page) renderBlocks(all display.Blocks) (list []markup) {
	for _, b := range all {
		list = append(list, p.renderBlock(b))
	}
	return list
}

func (p *page) renderBlock(b display.Block) markup {
	switch b := b.(type) {
	case display.Text:
		if strings.TrimSpace(string(b)) == "" {
			return ""
		}
		return element("p", classAttr("lines"), strings.Trim(p.translator.TranslateText(string(b)), "\n"))
	case display.Code:
		if b.Lang == display.LangMarkdown {
			return renderMarkdown(b.Source)
		}
		return element("pre", element("code", b.Source))
	case display.Diff:
		if b.OmittedLines > 0 {
			return element("div", renderDiffs(b.Unified), element("p", p.t("… %d lines omitted", b.OmittedLines)))
		}
		return renderDiffs(b.Unified)
	case display.Table:
		return p.renderTable(b)
	case display.Checklist:
		return renderChecklist(b)
	case display.Shell:
		return element("pre", element("code", strings.Join([]string{"$ " + b.Command, b.Status(),
			b.Output(p.translator.TranslateText), p.translator.TranslateText(b.Error)}, "\n")))
	}
	return ""
}

func renderChecklist(all display.Checklist) markup {
	var items []markup
	for _, c := range all {
		items = append(items, element("li", classAttr(string(c.State)),
			element("span", attr{"aria-hidden", "true"}, c.State.Symbol()), " ", c.Text))
	}
	return element("ul", classAttr("checks"), items)
}

func (p *page) renderTable(t display.Table) markup {
	row := func(name string, cells []display.Cell) markup {
		var list []markup
		for _, c := range cells {
			if c.Words {
				c.Text = p.translator.TranslateText(c.Text)
			}
			list = append(list, element(name, c.Text))
		}
		return element("tr", list)
	}
	var head markup
	if len(t.Header) > 0 {
		head = element("thead", row("th", t.Header))
	}
	var rows []markup
	for _, r := range t.Rows {
		rows = append(rows, row("td", r))
	}
	return element("div", classAttr("table"), attr{"tabindex", "0"}, element("table", head, element("tbody", rows)))
}

// fileDiff is the part of a diff about one file.
type fileDiff struct {
	path      string
	firstLine int // index of its first line in the whole diff
	lines     []diffLine
	added     int
	deleted   int
}

type diffLine struct {
	sign byte
	text string
}

// splitByFile splits a unified diff by file.
func splitByFile(unified string) (files []fileDiff) {
	at := func() *fileDiff {
		if len(files) == 0 {
			files = append(files, fileDiff{})
		}
		return &files[len(files)-1]
	}
	n := -1
	for sign, s := range display.DiffLines(unified) {
		s = strings.TrimRight(s, "\n")
		n++
		switch {
		case sign == 0 && (strings.HasPrefix(s, "--- ") || strings.HasPrefix(s, "diff ")):
			if f := at(); f.path != "" || len(f.lines) > 0 && !strings.HasPrefix(f.lines[0].text, "diff ") {
				files = append(files, fileDiff{firstLine: n})
			}
		case sign == 0 && strings.HasPrefix(s, "+++ "):
			at().path = strings.TrimPrefix(strings.TrimSpace(s[4:]), "b/")
		case sign == '+':
			at().added++
		case sign == '-':
			at().deleted++
		}
		if f := at(); f.path == "/dev/null" || f.path == "" && strings.HasPrefix(s, "--- ") &&
			!strings.HasPrefix(s, "--- /dev/null") {
			f.path = fileName(f, s)
		}
		f := at()
		f.lines = append(f.lines, diffLine{sign, s})
	}
	return files
}

// fileName returns the name in the --- line, for a file that the diff removes or begins with.
func fileName(f *fileDiff, s string) string {
	for _, l := range append(f.lines, diffLine{0, s}) {
		if name, ok := strings.CutPrefix(l.text, "--- "); ok && l.sign == 0 {
			return strings.TrimPrefix(strings.TrimSpace(name), "a/")
		}
	}
	return f.path
}

// renderDiffs renders a diff file by file.
func renderDiffs(unified string) markup {
	var all []markup
	for _, f := range splitByFile(unified) {
		all = append(all, f.render(nil))
	}
	return joinParts(all)
}

// render renders the file's diff; before maps a line of the whole diff to the markup above it.
func (f fileDiff) render(before map[int]markup) markup {
	var all, lines []markup
	end := func() {
		if len(lines) > 0 {
			all = append(all, element("pre", classAttr("diff"), attr{"tabindex", "0"}, lines))
		}
		lines = nil
	}
	for i, l := range f.lines {
		if m, ok := before[f.firstLine+i]; ok {
			end()
			all = append(all, m)
		}
		lines = append(lines, element("span", classAttr(map[byte]string{'+': "a", '-': "d", 0: "h"}[l.sign]),
			sanitize.Reveal(l.text), "\n"))
	}
	end()
	return element("details", classAttr("file"), attr{"open", ""},
		element("summary", element("code", f.path), " ", element("span", classAttr("ok"), "+"+strconv.Itoa(f.added)), " ",
			element("span", classAttr("failed"), "−"+strconv.Itoa(f.deleted))), all)
}

// renderHunks renders a diff with a checkbox named name at each hunk.
func (p *page) renderHunks(unified, name string) markup {
	choice := make(map[int]markup)
	for i, h := range display.SplitHunks(unified) {
		number := strconv.Itoa(i + 1)
		choice[h.Line] = element("label", classAttr("hunk"),
			element("input", attr{"type", "checkbox"}, attr{"name", name}, attr{"value", number}, attr{"checked", ""}), " ",
			p.t("hunk %s", number))
	}
	all := []markup{element("input", attr{"type", "hidden"}, attr{"name", name + "s"},
		attr{"value", strconv.Itoa(len(choice))})}
	for _, f := range splitByFile(sanitize.MaskWords(unified)) {
		all = append(all, f.render(choice))
	}
	return joinParts(all)
}

// maxListText is the most bytes of one text in a list.
const maxListText = 8 << 10

// renderLongText renders a text; a list shows its start and a link to the rest.
func (p *page) renderLongText(s string, whole bool, seq uint64) markup {
	if whole || len(s) <= maxListText {
		return element("pre", attr{"tabindex", "0"}, strings.TrimRight(s, "\n"))
	}
	return joinParts(element("pre", attr{"tabindex", "0"}, clip.Truncate(s, maxListText)),
		element("p", element("a", attr{"href", p.pageURL("s", p.projectSlug, p.ref.Session, "record", formatUint(seq))},
			p.t("show all"))))
}

// renderFields renders a JSON object field by field.
func (p *page) renderFields(raw json.RawMessage, whole bool, seq uint64) markup {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return p.renderLongText(string(raw), whole, seq)
	}
	var all []markup
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		name, _ := key.(string)
		shown := string(value)
		var s string
		if json.Unmarshal(value, &s) == nil {
			shown = s
		}
		switch {
		case strings.TrimSpace(shown) == "" || name == "ok" && shown == "true":
		case name == "diff":
			all = append(all, renderDiffs(shown))
		case len(shown) > 100 || strings.Contains(shown, "\n"):
			all = append(all, element("p", classAttr("label"), name), p.renderLongText(shown, whole, seq))
		default:
			all = append(all, element("p", classAttr("field"), name, ": ", element("code", shown)))
		}
	}
	return joinParts(all)
}
