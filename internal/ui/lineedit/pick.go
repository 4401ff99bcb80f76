package lineedit

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"coder/internal/core/sanitize"
	"coder/internal/ui/cells"
)

// Item is an entry of a [Picker].
type Item struct {
	Choice
	Value string // the value of choosing it
}

// Picker is a list to choose one item from: typing searches, arrows move, Enter chooses, Esc leaves.
type Picker struct {
	Title string // label of the search text
	Items []Item
	// Help is shown below the list, Nothing in place of an empty list.
	Help, EmptyText string
	Style           Style
	// Numbered lets items be chosen by number too.
	Numbered bool
	// ItemFromText, if set, turns the typed text into an item if no item matches.
	ItemFromText func(query string) (Item, bool)
	// IsSecret, if set, reports whether the typed text must not be shown.
	IsSecret func(query string) bool

	query    string
	number   int // digits typed so far
	selected int // index among the matches
	pageSize int // items shown in the last View
}

// Selected returns the index of the highlighted item among the matches.
func (p *Picker) Selected() int { return p.selected }

// Label returns the text of the item with this value, or the typed text.
func (p *Picker) Label(value string) string {
	for _, item := range p.matches() {
		if item.Value == value {
			return strings.TrimSpace(item.Text)
		}
	}
	return ""
}

// Select highlights the first item with this value.
func (p *Picker) Select(value string) {
	for i, item := range p.matches() {
		if item.Value == value {
			p.selected = i
			return
		}
	}
}

// HandleKey handles a key press. Enter is [Submit] with the value of an item, Esc is [Cancel].
func (p *Picker) HandleKey(k Key) Action {
	found := p.matches()
	n := len(found)
	if p.handleDigit(k, n) {
		if p.number*10 > n && p.number <= n {
			return Action{Kind: Submit, Text: found[p.number-1].Value}
		}
		return Action{}
	}
	p.number = 0
	switch {
	case k == Key{Name: Enter}, k == CtrlKey('j'): // an Enter that was pressed too early
		if n > 0 {
			return Action{Kind: Submit, Text: found[p.selected].Value}
		}
	case k == Key{Name: Escape}:
		return Action{Kind: Cancel}
	case k == CtrlKey('c'):
		return Action{Kind: Interrupt}
	case k == CtrlKey('z'):
		return Action{Kind: Suspend}
	case k == CtrlKey('l'):
		return Action{Kind: Redraw}
	case k == CtrlKey('d'):
		return Action{Kind: EOF}
	case k == Key{Name: Up}, k == CtrlKey('p'), k == Key{Name: Tab, Mod: Shift}:
		p.moveSelection(-1, n)
	case k == Key{Name: Down}, k == CtrlKey('n'), k == Key{Name: Tab}:
		p.moveSelection(+1, n)
	case k == Key{Name: PageUp}:
		p.selected = max(0, p.selected-max(1, p.pageSize))
	case k == Key{Name: PageDown}:
		p.selected = max(0, min(n-1, p.selected+max(1, p.pageSize)))
	case k == Key{Name: Home}:
		p.selected = 0
	case k == Key{Name: End}:
		p.selected = max(0, n-1)
	case k == CtrlKey('u'):
		p.setQuery("")
	case k == CtrlKey('w'):
		p.setQuery(p.query[:bigWordLeft(p.query, len(p.query))])
	case k == Key{Name: Backspace}, k == CtrlKey('h'):
		_, last := utf8.DecodeLastRuneInString(p.query)
		p.setQuery(p.query[:len(p.query)-last])
	case k.Name == Char && k.Mod&^Shift == 0 && k.Rune >= ' ':
		p.setQuery(p.query + cleanTyped(string(k.Rune)))
	}
	return Action{}
}

// handleDigit reports whether a key belongs to the number of an item, and highlights that item. Other digits
// are searched for.
func (p *Picker) handleDigit(k Key, n int) bool {
	if !p.Numbered || p.query != "" || k.Name != Char || k.Mod != 0 {
		return false
	}
	if k.Rune < '0' || k.Rune > '9' {
		if p.number > 0 && k.Rune > ' ' { // an address may begin with digits
			p.setQuery(strconv.Itoa(p.number))
		}
		return false
	}
	number := p.number*10 + int(k.Rune-'0')
	if number < 1 || number > n {
		if p.number > 0 {
			p.setQuery(strconv.Itoa(p.number))
		}
		return false
	}
	p.number, p.selected = number, number-1
	return true
}

// Paste adds pasted text to the search.
func (p *Picker) Paste(text string) {
	p.setQuery(p.query + strings.Join(strings.Fields(cleanTyped(text)), " "))
}

// Find returns the items that contain every word.
func (p *Picker) Find(words string) []Item {
	p.setQuery(words)
	return p.matches()
}

// Query returns the search text.
func (p *Picker) Query() string { return p.query }

func (p *Picker) setQuery(query string) {
	if len(query) <= maxInline {
		p.query, p.selected = query, 0
	}
}

func (p *Picker) moveSelection(by, n int) {
	if n > 0 {
		p.selected = (p.selected + by + n) % n
	}
}

// matches returns the items that contain every word of the query; an item with exactly that text is first.
func (p *Picker) matches() (items []Item) {
	words := strings.Fields(strings.ToLower(p.query))
	for _, item := range p.Items {
		text := strings.ToLower(item.Text + " " + item.Note + " " + item.Value)
		has := true
		for _, w := range words {
			has = has && strings.Contains(text, w)
		}
		switch {
		case has && len(words) == 1 && strings.TrimSpace(item.Text) == words[0]:
			items = append([]Item{item}, items...)
		case has:
			items = append(items, item)
		}
	}
	if len(items) == 0 && p.ItemFromText != nil && len(words) > 0 {
		if item, ok := p.ItemFromText(strings.TrimSpace(p.query)); ok {
			items = append(items, item)
		}
	}
	return items
}

// View lays out the list in at most height rows of at most width columns.
func (p *Picker) View(width, height int) (rows []string, cursorRow, cursorCol int) {
	paint := painter{width: max(1, width)}
	query := sanitize.Line(p.query, 0)
	if p.IsSecret != nil && p.IsSecret(p.query) {
		query = strings.Repeat("*", min(utf8.RuneCountInString(p.query), 8))
	}
	title := p.Style.truncate(strings.TrimRight(sanitize.Line(p.Title, 0), " "),
		max(1, width/2, width-cells.Width(query)-2))
	if !strings.HasSuffix(title, "：") { // the full-width colon includes a gap
		title += " "
	}
	paint.drawClipped(title, p.Style.Search)
	if room := paint.width - paint.col - 1; cells.Width(query) > room { // show its end
		query = cells.ShortenMiddle(query, max(room, 1), p.Style.ellipsis())
	}
	paint.drawClipped(query, "")
	cursorCol = min(paint.col, paint.width-1)
	found := p.matches()
	p.pageSize = max(1, min(len(found), height-2))
	first := max(0, min(p.selected-p.pageSize/2, len(found)-p.pageSize))
	shown := found[first:min(first+p.pageSize, len(found))]
	column := 0
	for _, item := range shown {
		column = max(column, min(cells.Width(sanitize.Line(item.Text, 0)), width/2))
	}
	for i, item := range shown {
		mark, style := "  ", p.Style.Menu
		if first+i == p.selected {
			mark, style = "> ", p.Style.Selected
		}
		if p.Numbered {
			mark += fmt.Sprintf("%*d  ", len(strconv.Itoa(len(found))), first+i+1)
		}
		paint.newline()
		paint.drawClipped(mark+p.Style.truncate(sanitize.Line(item.Text, 0), column), style)
		paint.drawClipped(strings.Repeat(" ", max(0, column+2+cells.Width(mark)-paint.col)), style)
		paint.drawClipped(p.Style.truncate(sanitize.Line(item.Note, 0), paint.width-paint.col), style)
	}
	if len(found) == 0 {
		paint.newline()
		paint.drawClipped("  "+p.EmptyText, p.Style.Note)
	}
	if len(shown)+2 <= height {
		paint.newline()
		help, apart := p.Help, " · "
		if p.Style.ASCII {
			apart = ", "
		}
		others := ""
		if n := len(found) - len(shown); n > 0 {
			others = fmt.Sprintf("%s +%d%s", p.Style.ellipsis(), n, apart)
		}
		for _, rest, ok := strings.Cut(help, apart); ok && cells.Width(others+help) > paint.width; _, rest,
			ok = strings.Cut(help, apart) {
			help = rest // the end says how to leave
		}
		paint.drawClipped(others+help, p.Style.Note)
	}
	paint.newline()
	return paint.rows, 0, cursorCol
}
