package lineedit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/ui/cells"

	"github.com/clipperhouse/displaywidth"
	"pgregory.net/rapid"
)

func TestView(t *testing.T) {
	const prompt = "> "
	tests := []struct {
		name, script string
		width        int
		rows         []string
		row, col     int
	}{
		{"empty", "", 10, []string{"> "}, 0, 2},
		{"some text", "abc", 10, []string{"> abc"}, 0, 5},
		{"inside", "abc<left>", 10, []string{"> abc"}, 0, 4},
		{"wrapped", "abcdefgh", 6, []string{"> abcd", "efgh"}, 1, 4},
		{"full row, cursor on the next", "abcd", 6, []string{"> abcd", ""}, 1, 0},
		{"full row, cursor inside", "abcd<left>", 6, []string{"> abcd"}, 0, 5},
		{"full row before a line end", "abcd<c-j>x<up><end>", 6, []string{"> abcd", "", "x"}, 1, 0},
		{"full row, cursor on the line after", "abcd<c-j>x", 6, []string{"> abcd", "x"}, 1, 1},
		{"cursor at the wrap", "abcdef<left><left>", 6, []string{"> abcd", "ef"}, 1, 0},
		{"wide", "你好", 10, []string{"> 你好"}, 0, 6},
		{"wide does not straddle", "a你好", 6, []string{"> a你", "好"}, 1, 2},
		{"cursor before the wide that wraps", "a你好<left>", 6, []string{"> a你", "好"}, 1, 0},
		{"combining", "e\u0301x", 10, []string{"> e\u0301x"}, 0, 4},
		{"family", "👩‍👩‍👧x", 10, []string{"> 👩‍👩‍👧x"}, 0, 5},
		{"flag", "🇩🇪x", 10, []string{"> 🇩🇪x"}, 0, 5},
		{"right to left", "שלום", 10, []string{"> שלום"}, 0, 6},
		{"tab", "<paste:a\tb>", 20, []string{"> a    b"}, 0, 8},
		{"escape character", "<paste:a\x1b[31m>", 20, []string{"> a^[[31m"}, 0, 9},
		{"what reorders is named", "<paste:a\u202eb>", 20, []string{"> a<U+202E>b"}, 0, 12},
		{"lines", "a<c-j>b<c-j>", 10, []string{"> a", "b", ""}, 2, 0},
		{"paste", "x<paste:a\rb>", 10, []string{"> x[copy 2", " lines]"}, 1, 7},
		{"cursor where a flag joins another", "🇩🇪<home>🇫", 10, []string{"> 🇫🇩🇪"}, 0, 4},
		{"a mark before a mark", "\u0301<home>e", 10, []string{"> e\u0301"}, 0, 3},
		{"a mark on nothing is named", "\u0301x", 20, []string{"> <U+0301>x"}, 0, 11},
		{"one column", "ab", 1, []string{">", " ", "a", "b", ""}, 4, 0},
		{"wide in one column", "你", 1, []string{">", " ", "?", ""}, 3, 0},
		{"no width is one column", "a", 0, []string{">", " ", "a", ""}, 3, 0},
		{"words are kept whole", "please review the whole of it", 20, []string{"> please review the ", "  whole of it"}, 1, 13},
		{"a blank behind a full row", "one two three four x", 20, []string{"> one two three ", "  four x"}, 1, 8},
		{"a word that fills the row", "one two three four", 20, []string{"> one two three four", "  "}, 1, 2},
		{"a word that no row has room for", "see abcdefghijklmnopqrstuvwxyz", 20, []string{"> see abcdefghijklmn", "  opqrstuvwxyz"}, 1, 14},
		{"an end of a line is none of a row", "one two three<c-j>four", 20, []string{"> one two three", "four"}, 1, 4},
		{"no stop begins a row", "一二三四五六七八九。十", 20, []string{"> 一二三四五六七八", "  九。十"}, 1, 8},
		{"a blank stays with a wide character", "one two threeab 二 abc", 20, []string{"> one two threeab ", "  二 abc"}, 1, 8},
		{"search", "make<enter><c-r>ma", 30, []string{"> make", "search history: ma"}, 1, 18},
		{"search for another", "make<enter><c-r>k<c-r>", 30, []string{"> make", "no more in history: k"}, 1, 21},
		{"search for nothing there", "make<enter><c-r>x", 30, []string{"> ", "not in history: x"}, 1, 17},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Editor{Prompt: []Span{{Text: prompt}}}
			e.View(tt.width)
			play(t, &e, tt.script)
			rows, row, col := e.View(tt.width)
			if !slices.Equal(rows, tt.rows) || row != tt.row || col != tt.col {
				t.Errorf("got  %q cursor %d,%d\nwant %q cursor %d,%d", rows, row, col, tt.rows, tt.row, tt.col)
			}
		})
	}
}

func TestSearchSpeaksTheLanguageOfThePerson(t *testing.T) {
	e := Editor{SearchLabel: "搜索：", NotFoundLabel: "没有："}
	play(t, &e, "make<enter><c-r>m")
	if rows, _, _ := e.View(30); rows[1] != "搜索：m" {
		t.Errorf("%q", rows)
	}
	play(t, &e, "x")
	if rows, _, _ := e.View(30); rows[1] != "没有：mx" {
		t.Errorf("%q", rows)
	}
}

func TestViewStyles(t *testing.T) {
	const dim, green, blue = "\x1b[2m", "\x1b[32m", "\x1b[34m"
	e := Editor{
		Prompt: []Span{{"context: 1 tokens\n", dim}, {"[build] /w> ", green}},
		Style:  Style{Paste: blue, Selected: "\x1b[7m", Note: dim},
		Complete: func(string, int) (int, []Choice) {
			return 0, []Choice{{"one", "first"}, {"three", "third and much too long"}}
		},
	}
	play(t, &e, "<paste:a\rb>x")
	rows, row, col := e.View(12)
	want := []string{
		dim + "context: 1 t" + resetStyle, dim + "okens" + resetStyle, green + "[build] /w> " + resetStyle,
		blue + "[copy 2 line" + resetStyle, blue + "s]" + resetStyle + "x",
	}
	if !slices.Equal(rows, want) || row != 4 || col != 3 {
		t.Errorf("got  %q cursor %d,%d\nwant %q", rows, row, col, want)
	}
	play(t, &e, "<esc>t<tab>")
	rows, row, col = e.View(24)
	want = []string{
		dim + "context: 1 tokens" + resetStyle, green + "[build] /w> " + resetStyle + "t",
		"\x1b[7m> one" + resetStyle + dim + "    first" + resetStyle,
		"  three" + dim + "  third and much…" + resetStyle,
	}
	if !slices.Equal(rows, want) || row != 1 || col != 13 {
		t.Errorf("got  %q cursor %d,%d\nwant %q", rows, row, col, want)
	}
}

func TestMenuScrolls(t *testing.T) {
	var choices []Choice
	for i := range 20 {
		choices = append(choices, Choice{Text: fmt.Sprint("x", i)})
	}
	e := Editor{Complete: func(string, int) (int, []Choice) { return 0, choices }}
	play(t, &e, "x<tab>")
	for i := range choices {
		rows, _, _ := e.View(20)
		if len(rows) != 1+maxMenu || !slices.Contains(rows, fmt.Sprint("> x", i)) {
			t.Errorf("choice %d: %q", i, rows)
		}
		play(t, &e, "<tab>")
	}
	for most, want := range map[int]string{0: "  … +13", 21: "  … +13", 20: "  …"} {
		e.MaxChoices = most
		if rows, _, _ := e.View(20); rows[len(rows)-1] != want {
			t.Errorf("of %d at most: %q, want %q", most, rows[len(rows)-1], want)
		}
	}
}

func TestUpAndDownKeepTheColumn(t *testing.T) {
	tests := []struct {
		name, script string
		width        int
		want         string
	}{
		{"over a short line", "abcdef<c-j>x<c-j>abcdef<up><up>", 20, "abcd|ef\nx\nabcdef"},
		{"and back", "abcdef<c-j>x<c-j>abcdef<up><up><down><down>", 20, "abcdef\nx\nabcdef|"},
		{"wrapped rows", "abcdefghij<up>", 6, "abcd|efghij"},
		{"wide characters", "你好你<c-j>abcde<up>", 20, "你|好你\nabcde"},
		{"down over a wrap", "abcdefghij<home><down>", 6, "abcdef|ghij"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Editor{Prompt: []Span{{Text: "> "}}}
			e.View(tt.width)
			play(t, &e, tt.script)
			if got := marked(&e); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

var pieces = []string{
	"a", "Z", " ", "你", "好", "e\u0301", "👩‍👩‍👧", "🇩🇪", "ש", "\t", "\x1b", "\u200b", "\u202e", "한", "ﬀ", "☺️", "\u0301", "🇫",
}

// anyKey draws a key that edits, or a paste.
func anyKey(t *rapid.T, e *Editor) {
	keys := []Key{
		{Name: Left}, {Name: Right}, {Name: Up}, {Name: Down}, {Name: Home}, {Name: End}, {Name: Backspace},
		{Name: Delete}, CtrlKey('j'), CtrlKey('k'), CtrlKey('w'), CtrlKey('y'), CtrlKey('_'), AltKey('b'),
		AltKey('f'), AltKey('d'), AltKey('y'), CtrlKey('r'), {Name: Enter}, {Name: Escape}, {Name: Tab},
	}
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		e.HandleKey(rapid.SampledFrom(keys).Draw(t, "key"))
	case 1:
		e.Paste(strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(pieces, "\r")), 0, 6).Draw(t, "paste"), ""))
	default:
		for _, r := range rapid.SampledFrom(pieces).Draw(t, "typed") {
			e.HandleKey(RuneKey(r))
		}
	}
}

// Whatever is typed: rows fit, the cursor is in a cell, nothing is lost or
// doubled, and the cursor stands between clusters.
func TestAnyKeysGiveAViewThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Editor{
			Prompt: []Span{{"计数: 1 token\n", "\x1b[2m"}, {"[build] /w> ", "\x1b[32m"}},
			Complete: func(draft string, cursor int) (int, []Choice) {
				return cursor, []Choice{{"你好 ", "note"}, {"你们 ", ""}, {"xyz", "\x1b[2J"}}[:rapid.IntRange(0, 3).Draw(t, "choices")]
			},
		}
		for range rapid.IntRange(1, 40).Draw(t, "keys") {
			anyKey(t, &e)
			width := rapid.IntRange(1, 30).Draw(t, "width")
			rows, row, col := e.View(width)
			checkView(t, &e, rows, row, col, width)
		}
	})
}

func checkView(t *rapid.T, e *Editor, rows []string, row, col, width int) {
	t.Helper()
	for _, r := range rows {
		if cells.Width(r) > width {
			t.Fatalf("row %q is wider than %d", r, width)
		}
	}
	if row < 0 || row >= len(rows) || col < 0 || col >= width {
		t.Fatalf("cursor %d,%d in %d rows of %d columns", row, col, len(rows), width)
	}
	if !utf8.ValidString(e.draft.raw) || e.cursor < 0 || e.cursor > len(e.draft.raw) {
		t.Fatalf("draft %q, cursor %d", e.draft.raw, e.cursor)
	}
	if e.search != nil || e.menu != nil {
		return
	}
	wantRows, wantRow, wantCol := naiveView(e, width)
	if width >= minRoomyWidth { // words are kept whole; of all else nothing is lost or doubled
		if got, want := upTo(rows, row, col), upTo(wantRows, wantRow, wantCol); got != want {
			t.Fatalf("draft %q at %d, width %d: before the cursor %q, want %q", e.draft.raw, e.cursor, width, got, want)
		}
		if got, want := upTo(rows, len(rows), 0), upTo(wantRows, len(wantRows), 0); got != want {
			t.Fatalf("draft %q, width %d: %q, want %q", e.draft.raw, width, got, want)
		}
		return
	}
	for i, r := range rows {
		rows[i] = bare.Replace(r)
	}
	if !slices.Equal(rows, wantRows) || row != wantRow || col != wantCol {
		t.Fatalf("draft %q at %d, width %d:\n got %q %d,%d\nwant %q %d,%d",
			e.draft.raw, e.cursor, width, rows, row, col, wantRows, wantRow, wantCol)
	}
}

// upTo is what stands before a place in rows, without looks and blanks.
func upTo(rows []string, row, col int) string {
	all := strings.Join(rows[:row], "")
	if row < len(rows) {
		head, _ := cells.Truncate(bare.Replace(rows[row]), col)
		all += head
	}
	return strings.ReplaceAll(bare.Replace(all), " ", "")
}

var bare = strings.NewReplacer("\x1b[2m", "", "\x1b[32m", "", resetStyle, "")

// naiveView wraps by counting cells of the text before and after the cursor.
func naiveView(e *Editor, width int) (rows []string, row, col int) {
	rows = []string{""}
	used := 0
	brk := func() { rows, used = append(rows, ""), 0 }
	put := func(s string) {
		g := displaywidth.StringGraphemes(s)
		for g.Next() {
			v, w := g.Value(), cells.Columns(g.Value())
			if w > width {
				v, w = "?", 1
			}
			if used+w > width {
				brk()
			}
			rows[len(rows)-1] += v
			used += w
		}
	}
	for i, line := range []string{"计数: 1 token", "[build] /w> "} {
		if i > 0 {
			brk()
		}
		put(line)
	}
	raw, marked := e.draft.raw, false
	for i := 0; i <= len(raw); i = clusterEnd(raw, i) {
		cluster, shown, lead := "", "", 0
		if i < len(raw) {
			width := 0
			cluster, width = clusterAt(raw, i)
			shown, _ = e.displayCell(cluster, width)
			g := displaywidth.StringGraphemes(shown)
			g.Next()
			lead = cells.Columns(g.Value())
		}
		if i >= e.cursor && !marked {
			marked = true
			if used+max(1, min(lead, width)) > width {
				brk()
			}
			row, col = len(rows)-1, used
		}
		if i == len(raw) {
			break
		}
		if shown == "\n" {
			brk()
			continue
		}
		put(shown)
	}
	return rows, row, col
}

// Moving left from any place and right again comes back, cluster by cluster.
func TestLeftAndRightAreOpposites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(append(pieces, "\n", string(firstPaste)))).Draw(t, "text"), "")
		var starts []int
		for i := 0; i < len(text); i = clusterEnd(text, i) {
			starts = append(starts, i)
		}
		at := len(text)
		for len(starts) > 0 {
			want := starts[len(starts)-1]
			starts = starts[:len(starts)-1]
			if at = clusterStart(text, at); at != want {
				t.Fatalf("in %q: before gives %d, want %d", text, at, want)
			}
		}
	})
}

func FuzzPaste(f *testing.F) {
	for _, s := range []string{"", "a", "a\rb", "\r\n\r\n", "\xff\n", "\U00100000\n", "\x1b[201~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var e Editor
		play(t, &e, "a")
		e.Paste(s)
		play(t, &e, "b")
		want := strings.ToValidUTF8(normalizeLineEnds(s), "\uFFFD")
		if countLines(want) == 1 {
			want = strings.TrimSuffix(want, "\n")
		}
		if len(want) <= maxInline && countLines(want) == 1 {
			want = cleanTyped(want)
		}
		if got := e.Text(); got != "a"+want+"b" {
			t.Errorf("pasted %q, text %q", s, got)
		}
	})
}
