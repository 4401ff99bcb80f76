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

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// line makes untrusted text fit for one line of a list.
func line(s string) string { return sanitize.Line(s, 400) }

// marked returns s on one line, with words highlighted.
func marked(s string, words []string) markup {
	folded := strings.ToLower(s)
	if len(folded) != len(s) { // lower case has another length
		return text(s)
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
		all = append(all, s[:at], el("mark", s[at:at+long]))
		s, folded = s[at+long:], folded[at+long:]
	}
	return join(append(all, s)...)
}

// prose renders Markdown for the page, without anything that loads or runs.
func prose(s string) markup {
	return el("div", class("prose"), markup(export.Fragment(s)))
}

// blocks renders blocks one below the other.
func (p *page) blocks(all display.Blocks) (list []markup) {
	for _, b := range all {
		list = append(list, p.block(b))
	}
	return list
}

func (p *page) block(b display.Block) markup {
	switch b := b.(type) {
	case display.Text:
		if strings.TrimSpace(string(b)) == "" {
			return ""
		}
		return el("p", class("lines"), strings.Trim(p.words.Said(string(b)), "\n"))
	case display.Code:
		if b.Lang == display.Markdown {
			return prose(b.Source)
		}
		return el("pre", el("code", b.Source))
	case display.Diff:
		if b.More > 0 {
			return el("div", diffs(b.Unified), el("p", p.t("… %d lines omitted", b.More)))
		}
		return diffs(b.Unified)
	case display.Table:
		return p.table(b)
	case display.Checklist:
		return checklist(b)
	case display.Shell:
		return el("pre", el("code", strings.Join([]string{"$ " + b.Command, b.Status(), b.Output(p.words.Said), p.words.Said(b.Error)}, "\n")))
	}
	return ""
}

func checklist(all display.Checklist) markup {
	var items []markup
	for _, c := range all {
		items = append(items, el("li", class(string(c.State)), el("span", attr{"aria-hidden", "true"}, c.State.Mark()), " ", c.Text))
	}
	return el("ul", class("checks"), items)
}

func (p *page) table(t display.Table) markup {
	row := func(name string, cells []display.Cell) markup {
		var list []markup
		for _, c := range cells {
			if c.Words {
				c.Text = p.words.Said(c.Text)
			}
			list = append(list, el(name, c.Text))
		}
		return el("tr", list)
	}
	var head markup
	if len(t.Head) > 0 {
		head = el("thead", row("th", t.Head))
	}
	var rows []markup
	for _, r := range t.Rows {
		rows = append(rows, row("td", r))
	}
	return el("div", class("table"), attr{"tabindex", "0"}, el("table", head, el("tbody", rows)))
}

// fileDiff is the part of a diff about one file.
type fileDiff struct {
	path  string
	first int // index of its first line in the whole diff
	lines []diffLine
	added int
	gone  int
}

type diffLine struct {
	sign byte
	text string
}

// byFile splits a unified diff by file.
func byFile(unified string) (files []fileDiff) {
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
				files = append(files, fileDiff{first: n})
			}
		case sign == 0 && strings.HasPrefix(s, "+++ "):
			at().path = strings.TrimPrefix(strings.TrimSpace(s[4:]), "b/")
		case sign == '+':
			at().added++
		case sign == '-':
			at().gone++
		}
		if f := at(); f.path == "/dev/null" || f.path == "" && strings.HasPrefix(s, "--- ") && !strings.HasPrefix(s, "--- /dev/null") {
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

// diffs renders a diff file by file.
func diffs(unified string) markup {
	var all []markup
	for _, f := range byFile(unified) {
		all = append(all, f.show(nil))
	}
	return join(all)
}

// show renders the file's diff; before maps a line of the whole diff to the markup above it.
func (f fileDiff) show(before map[int]markup) markup {
	var all, lines []markup
	end := func() {
		if len(lines) > 0 {
			all = append(all, el("pre", class("diff"), attr{"tabindex", "0"}, lines))
		}
		lines = nil
	}
	for i, l := range f.lines {
		if m, ok := before[f.first+i]; ok {
			end()
			all = append(all, m)
		}
		lines = append(lines, el("span", class(map[byte]string{'+': "a", '-': "d", 0: "h"}[l.sign]), sanitize.Reveal(l.text), "\n"))
	}
	end()
	return el("details", class("file"), attr{"open", ""},
		el("summary", el("code", f.path), " ", el("span", class("ok"), "+"+strconv.Itoa(f.added)), " ", el("span", class("failed"), "−"+strconv.Itoa(f.gone))), all)
}

// hunks renders a diff with a checkbox named name at each hunk.
func (p *page) hunks(unified, name string) markup {
	choice := make(map[int]markup)
	for i, h := range display.Hunks(unified) {
		number := strconv.Itoa(i + 1)
		choice[h.Line] = el("label", class("hunk"), el("input", attr{"type", "checkbox"}, attr{"name", name}, attr{"value", number}, attr{"checked", ""}), " ", p.t("hunk %s", number))
	}
	all := []markup{el("input", attr{"type", "hidden"}, attr{"name", name + "s"}, attr{"value", strconv.Itoa(len(choice))})}
	for _, f := range byFile(sanitize.MaskWords(unified)) {
		all = append(all, f.show(choice))
	}
	return join(all)
}

// shownText is the most bytes of one text in a list.
const shownText = 8 << 10

// long renders a text; a list shows its start and a link to the rest.
func (p *page) long(s string, whole bool, seq uint64) markup {
	if whole || len(s) <= shownText {
		return el("pre", attr{"tabindex", "0"}, strings.TrimRight(s, "\n"))
	}
	return join(el("pre", attr{"tabindex", "0"}, clip.Text(s, shownText)), el("p", el("a", attr{"href", p.at("s", p.name, p.place.Session, "record", decimal(seq))}, p.t("show all"))))
}

// fields renders a JSON object field by field.
func (p *page) fields(raw json.RawMessage, whole bool, seq uint64) markup {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return p.long(string(raw), whole, seq)
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
			all = append(all, diffs(shown))
		case len(shown) > 100 || strings.Contains(shown, "\n"):
			all = append(all, el("p", class("label"), name), p.long(shown, whole, seq))
		default:
			all = append(all, el("p", class("field"), name, ": ", el("code", shown)))
		}
	}
	return join(all)
}
