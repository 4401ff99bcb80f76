package lineedit

import (
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/core/chat"
)

var keyNames = map[string]Key{
	"enter": {Name: Enter}, "esc": {Name: Escape}, "tab": {Name: Tab}, "bs": {Name: Backspace},
	"del": {Name: Delete}, "up": {Name: Up}, "down": {Name: Down}, "left": {Name: Left},
	"right": {Name: Right}, "home": {Name: Home}, "end": {Name: End},
	"s-tab": {Name: Tab, Mod: Shift}, "a-enter": {Name: Enter, Mod: Alt},
	"s-enter": {Name: Enter, Mod: Shift}, "a-bs": {Name: Backspace, Mod: Alt},
	"c-left": {Name: Left, Mod: Ctrl}, "c-right": {Name: Right, Mod: Ctrl},
	"c-home": {Name: Home, Mod: Ctrl}, "c-end": {Name: End, Mod: Ctrl},
	"pgup": {Name: PageUp}, "ins": {Name: Insert},
}

// play types a script: characters as they are, keys in angle brackets such as
// <left>, <c-a>, <a-b>, and pastes as <paste:text>. It returns the last action
// that asked for anything.
func play(t testing.TB, e *Editor, script string) (last Action) {
	t.Helper()
	for script != "" {
		r, n := utf8.DecodeRuneInString(script)
		key := RuneKey(r)
		if name, rest, ok := strings.Cut(script[n:], ">"); r == '<' && ok {
			script = rest
			if text, ok := strings.CutPrefix(name, "paste:"); ok {
				e.Paste(text)
				continue
			}
			key = keyOf(t, name)
		} else {
			script = script[n:]
		}
		if a := e.HandleKey(key); a.Kind != None {
			last = a
		}
	}
	return last
}

func keyOf(t testing.TB, name string) Key {
	t.Helper()
	if k, ok := keyNames[name]; ok {
		return k
	}
	mod, r, ok := strings.Cut(name, "-")
	c, _ := utf8.DecodeRuneInString(r)
	switch {
	case ok && mod == "c":
		return CtrlKey(c)
	case ok && mod == "a":
		return AltKey(c)
	}
	t.Fatalf("no key %q", name)
	return Key{}
}

// marked is the draft as shown, with | at the cursor.
func marked(e *Editor) string {
	return e.draft.withRaw(e.draft.raw[:e.cursor]).String() + "|" + e.draft.withRaw(e.draft.raw[e.cursor:]).String()
}

func TestKeysEditTheDraft(t *testing.T) {
	const family = "👩‍👩‍👧"
	tests := []struct{ name, script, want string }{
		{"typing", "hello", "hello|"},
		{"left and insert", "ac<left>b", "ab|c"},
		{"home and end", "bc<home>a<end>d", "abcd|"},
		{"readline a e b f", "bc<c-a>a<c-e>d<c-b><c-b><c-f>x", "abcx|d"},
		{"backspace", "abc<bs>", "ab|"},
		{"backspace at the start", "<bs>a<home><bs>", "|a"},
		{"ctrl h", "ab<c-h>", "a|"},
		{"delete", "abc<home><del>", "|bc"},
		{"delete at the end", "a<del>", "a|"},
		{"backspace takes a whole cluster", "ae\u0301<bs>", "a|"},
		{"backspace takes a family", "a" + family + "<bs>", "a|"},
		{"backspace takes a flag", "🇩🇪🇫🇷<bs>", "🇩🇪|"},
		{"left over wide and joined", "中" + family + "<left><left>x", "x|中" + family},
		{"delete over a cluster", "e\u0301x<home><del>", "|x"},
		{"kill to the end and yank", "abc def<home><c-f><c-k>x<c-y>", "axbc def|"},
		{"kill to the start", "abc def<c-left><c-u>", "|def"},
		{"kill the line end", "a<c-j>b<up><end><c-k>", "a|b"},
		{"kill a word back", "one two-three<c-w>", "one |"},
		{"alt backspace stops at signs", "one two-three<a-bs>", "one two-|"},
		{"kill a word forward", "one two<home><a-d>", "| two"},
		{"kills in a row are one", "a b c<c-w><c-w><c-y>", "a b c|"},
		{"kills apart are two", "a b<c-w>x<c-w><c-y>", "a x|"},
		{"yank the older", "one two<c-w><left><right><c-w><c-y><a-y>", "two|"},
		{"words left and right", "one two three<a-b><a-b><a-f>|", "one two|| three"},
		{"ctrl arrows", "one two<c-left><c-left><c-right>x", "onex| two"},
		{"word over CJK", "你好 世界<a-b>", "你好 |世界"},
		{"words do not start inside a cluster", "x ☺️<a-b>", "x |☺️"},
		{"new lines", "a<c-j>b<a-enter>c<s-enter>d", "a\nb\nc\nd|"},
		{"backslash and enter", `a\<enter>b`, "a\nb|"},
		{"home in a later line", "ab<c-j>cd<home>x", "ab\nx|cd"},
		{"to the very start and end", "ab<c-j>cd<c-home>x<c-end>y", "xab\ncdy|"},
		{"ctrl d does not delete", "ab<home><c-d>", "|ab"},
		{"unknown keys do nothing", "a<pgup><ins><c-q><a-x>b", "ab|"},
		{"undo a run", "abc<c-_>", "|"},
		{"undo word by word", "one two<c-_>", "one |"},
		{"undo a kill", "one two<c-w><c-_>", "one two|"},
		{"moving ends a run", "ab<left>c<c-_>", "a|b"},
		{"undo twice", "a<left>b<c-_><c-_>", "|"},
		{"undo nothing", "<c-_>a", "a|"},
		{"undo a clear", "abc<esc><c-_>", "abc|"},
		{"undo a paste", "a<paste:x\ny><c-_>", "a|"},
		{"undo a new line by backslash", `a\<enter><c-_>`, `a\|`},
		{"esc clears", "abc<esc>", "|"},
		{"paste of a line", "a<paste:b c>d", "ab cd|"},
		{"paste of a line with its end", "a<paste:b\r>c", "abc|"},
		{"paste of lines", "see <paste:a\rb\rc> ok", "see [copy 3 lines] ok|"},
		{"paste with CR LF", "<paste:a\r\nb\r\n>", "[copy 2 lines]|"},
		{"a paste goes as one", "x<paste:a\rb><bs>", "x|"},
		{"a paste is passed as one", "x<paste:a\rb><left>y<left><left><del>", "|y[copy 2 lines]"},
		{"a combining mark after a paste", "<paste:a\rb>\u0301<bs><bs>", "|"},
		{"a killed paste comes back", "<paste:a\rb> x<c-u><c-y><c-y>", "[copy 2 lines] x[copy 2 lines] x|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var e Editor
			play(t, &e, tt.script)
			if got := marked(&e); got != tt.want {
				t.Errorf("after %q:\n got %q\nwant %q", tt.script, got, tt.want)
			}
		})
	}
}

func TestControlCharactersAreNotTyped(t *testing.T) {
	var e Editor
	for _, r := range []rune{0, 1, '\n', '\r', 0x1b} {
		e.HandleKey(RuneKey(r))
	}
	e.HandleKey(RuneKey(firstPaste + 3))
	if got := e.Text(); got != "\uFFFD" {
		t.Errorf("text %q, want only the character in the place of a private one", got)
	}
}

func TestEnterSendsWhatWasTypedAndPasted(t *testing.T) {
	tests := []struct{ name, script, text, shown string }{
		{"a line", "hi<enter>", "hi", "hi"},
		{"several lines", "a<c-j>b<enter>", "a\nb", "a\nb"},
		{"two pastes among text", "fix <paste:a\rb> and <paste:c\r\nd\r\n>!<enter>",
			"fix a\nb and c\nd\n!", "fix [copy 2 lines] and [copy 2 lines]!"},
		{"the cursor does not matter", "abc<home><enter>", "abc", "abc"},
		{"two backslashes are one", `a\\<enter>`, `a\\`, `a\\`},
		{"blanks stay", "  a <enter>", "  a ", "  a "},
		{"tabs and escapes in a paste stay", "<paste:a\tb\x1b[31m>x<enter>", "a\tb\x1b[31mx", "a\tb\x1b[31mx"},
		{"broken UTF-8 is replaced", "<paste:a\xffb>x<enter>", "a\uFFFDbx", "a\uFFFDbx"},
		{"a deleted paste is gone", "<paste:a\rb><paste:c\rd><bs><enter>", "a\nb", "[copy 2 lines]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var e Editor
			a := play(t, &e, tt.script)
			if a.Kind != Submit || a.Text != tt.text || a.Draft.String() != tt.shown {
				t.Errorf("action %v, text %q, shown %q; want text %q, shown %q", a.Kind, a.Text, a.Draft, tt.text, tt.shown)
			}
			if !e.IsEmpty() {
				t.Errorf("draft left: %q", e.Text())
			}
		})
	}
}

func TestKeysAskTheCaller(t *testing.T) {
	tests := []struct {
		script string
		want   ActionKind
	}{
		{"<enter>", None}, {"  <enter>", None}, {"<esc>", Cancel}, {"a<esc>", Clear}, {"a<esc><esc>", Cancel},
		{"<c-d>", EOF}, {"a<c-d>", None}, {"<c-c>", Interrupt}, {"ab<c-c>", Interrupt}, {"<c-z>", Suspend},
		{"<c-l>", Redraw}, {"<c-g>", Edit}, {"<tab>", ToggleMode}, {"a<tab>b", None}, {"<s-tab>", CycleMode},
		{"a<s-tab>", CycleMode}, {"<c-r>x<c-c>", Interrupt}, {"<c-r><c-z>", Suspend},
	}
	for _, tt := range tests {
		var e Editor
		if got := play(t, &e, tt.script); got.Kind != tt.want {
			t.Errorf("%s: action %v, want %v", tt.script, got.Kind, tt.want)
		}
	}
}

func TestHistory(t *testing.T) {
	const sent = "a<enter>b<enter>"
	tests := []struct{ name, script, want string }{
		{"one by one, and stops at the first", sent + "<up><up><up>", "a|"},
		{"the newest first", sent + "<up>", "b|"},
		{"forward again", sent + "<up><up><down>", "b|"},
		{"past the newest is empty", sent + "<up><down>", "|"},
		{"changes on the way are not kept", sent + "<up>x<down>", "|"},
		{"changes to an older one are not kept", sent + "<up><up>x<down><up>", "a|"},
		{"the new draft is back", sent + "new<up><up><down><down>", "new|"},
		{"and can be undone", sent + "new<up><c-_>", "new|"},
		{"down with a new draft does nothing", sent + "new<down>", "new|"},
		{"a cleared line is not recalled", sent + "x<esc><up>", "b|"},
		{"clearing leaves history", sent + "<up><up><esc><up>", "b|"},
		{"sending leaves history", sent + "<up><up><enter><up><up>", "b|"},
		{"nothing sent", "<up>", "|"},
		{"blanks are not kept", sent + " <enter><esc><up>", "b|"},
		{"ctrl p and n", sent + "<c-p><c-p><c-n>", "b|"},
		{"a paste is recalled", "<paste:x\ry><enter><up>", "[copy 2 lines]|"},
		{"rows come before history", sent + "x<c-j>y<up>", "x|\ny"},
		{"history comes after the first row", sent + "x<c-j>y<up><up>", "b|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var e Editor
			play(t, &e, tt.script)
			if got := marked(&e); got != tt.want {
				t.Errorf("after %q: got %q, want %q", tt.script, got, tt.want)
			}
		})
	}
}

func TestRecalledPasteIsSentInFull(t *testing.T) {
	var e Editor
	play(t, &e, "<paste:x\ry>!<enter><paste:p\rq\rr>")
	if a := play(t, &e, "<up><enter>"); a.Text != "x\ny!" {
		t.Errorf("sent %q", a.Text)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var e Editor
	for range maxHistory + 10 {
		play(t, &e, "x<enter>")
	}
	if n := len(e.history.sent); n != maxHistory {
		t.Errorf("%d drafts kept", n)
	}
	big := strings.Repeat("a\n", maxHistoryBytes/5)
	for range 4 {
		e.Paste(big)
		play(t, &e, "<enter>")
	}
	if e.history.bytes > maxHistoryBytes {
		t.Errorf("%d bytes kept", e.history.bytes)
	}
}

func TestSearch(t *testing.T) {
	const sent = "make test<enter>git push<enter>make lint<enter>"
	tests := []struct{ name, script, want string }{
		{"the newest match", sent + "<c-r>make", "make lint|"},
		{"an older one", sent + "<c-r>make<c-r>", "make test|"},
		{"the same is not found again", "make test<enter>make it<enter>make it<enter><c-r>make<c-r>", "make test|"},
		{"and back", sent + "<c-r>make<c-r><c-s>", "make lint|"},
		{"a longer query narrows", sent + "<c-r>make t", "make test|"},
		{"no match keeps the last", sent + "<c-r>makex", "make lint|"},
		{"a shorter query widens", sent + "<c-r>make t<bs>", "make lint|"},
		{"esc goes back", sent + "dr<c-r>git<esc>", "dr|"},
		{"ctrl g goes back", sent + "dr<c-r>git<c-g>", "dr|"},
		{"another key accepts", sent + "<c-r>git<home>x", "x|git push"},
		{"up goes on from there", sent + "<c-r>git<up>", "make test|"},
		{"found can be undone", sent + "dr<c-r>git<end><c-_>", "dr|"},
		{"small letters find capitals", "Make It<enter>" + sent + "<c-r>make i", "Make It|"},
		{"capitals where there are none", sent + "<c-r>MAKE", "make lint|"},
		{"capitals find themselves", "Make It<enter>" + sent + "<c-r>Make", "Make It|"},
		{"one after the other", sent + "<c-r><c-r><c-r>", "git push|"},
		{"and back without a query", sent + "<c-r><c-r><c-r><c-s>", "make lint|"},
		{"nothing found, nothing changed", sent + "dr<c-r>zzz<end>!", "dr!|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var e Editor
			play(t, &e, tt.script)
			if got := marked(&e); got != tt.want {
				t.Errorf("after %q: got %q, want %q", tt.script, got, tt.want)
			}
		})
	}
	var e Editor
	if a := play(t, &e, sent+"<c-r>git<enter>"); a.Text != "git push" {
		t.Errorf("enter in a search sent %q", a.Text)
	}
}

func TestCompletion(t *testing.T) {
	commands := []Choice{{"/mode ", "switch"}, {"/model ", "choose"}, {"/help ", ""}}
	complete := func(draft string, cursor int) (int, []Choice) {
		start := strings.LastIndexByte(draft[:cursor], ' ') + 1
		var found []Choice
		for _, c := range commands {
			if strings.HasPrefix(c.Text, draft[start:cursor]) {
				found = append(found, c)
			}
		}
		return start, found
	}
	tests := []struct {
		name, script, want string
		menu               int
	}{
		{"the only one", "/h<tab>", "/help |", 0},
		{"none", "/x<tab>", "/x|", 0},
		{"what they share", "/m<tab>", "/mode|", 2},
		{"enter takes the first", "/m<tab><enter>", "/mode |", 0},
		{"tab goes on", "/m<tab><tab><enter>", "/model |", 0},
		{"around", "/m<tab><tab><tab><enter>", "/mode |", 0},
		{"shift tab goes back", "/m<tab><s-tab><enter>", "/model |", 0},
		{"arrows", "/m<tab><down><up><down><enter>", "/model |", 0},
		{"esc closes only the menu", "/m<tab><esc>", "/mode|", 0},
		{"typing narrows", "/m<tab>l", "/model|", 1},
		{"erasing widens", "/m<tab><bs><bs><bs><bs>", "/|", 3},
		{"typing beyond closes", "/m<tab>x", "/modex|", 0},
		{"moving closes", "/m<tab><home>", "|/mode", 0},
		{"in the middle", "a /h z<left><left><tab>", "a /help | z", 0},
		{"beside a paste", "<paste:a\rb> /h<tab>", "[copy 2 lines] /help |", 0},
		{"it can be undone", "/h<tab><c-_>", "/h|", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Editor{Complete: complete}
			play(t, &e, tt.script)
			menu := 0
			if e.menu != nil {
				menu = len(e.menu.choices)
			}
			if got := marked(&e); got != tt.want || menu != tt.menu {
				t.Errorf("after %q: got %q with %d choices, want %q with %d", tt.script, got, menu, tt.want, tt.menu)
			}
		})
	}
}

// What is offered while one types, at each bar of the script, is in nobody's way.
func TestOffers(t *testing.T) {
	names := []Choice{{Text: "@main.go "}, {Text: "@make/"}, {Text: "@make/all.go "}}
	complete := func(draft string, cursor int) (int, []Choice) {
		start := strings.LastIndexByte(draft[:cursor], ' ') + 1
		var found []Choice
		for _, c := range names {
			if word := draft[start:cursor]; word != "" && strings.HasPrefix(c.Text, word) {
				found = append(found, c)
			}
		}
		return start, found
	}
	tests := []struct {
		name, script, want string
		menu               int
		sent               string
	}{
		{"typing goes on", "@m|ain", "@main|", 3, ""},
		{"narrower", "@m|ain|", "@main|", 1, ""},
		{"enter sends", "see @m|<enter>", "|", 0, "see @m"},
		{"tab takes the best", "see @m|<tab>", "see @main.go |", 0, ""},
		{"down chooses", "@m|<down><down><enter>", "@make/|", 0, ""},
		{"up chooses the last", "@m|<up><enter>", "@make/all.go |", 0, ""},
		{"tab takes what was chosen", "@m|<down><down><tab>", "@make/|", 0, ""},
		{"a folder is gone on from", "@m|<down><down><tab>|", "@make/|", 2, ""},
		{"what was chosen stays chosen", "@m|<down><down>a|<enter>", "@make/|", 0, ""},
		{"what was chosen is gone", "@m|<down><down>ai|<enter>", "|", 0, "@mai"},
		{"esc closes it, and nothing else", "@m|<esc>", "@m|", 0, ""},
		{"and it stays closed", "@m|<esc>a|k|", "@mak|", 0, ""},
		{"but not for the next", "@m|<esc>a| |@|", "@ma @|", 3, ""},
		{"nor for one begun anew", "@m|<esc><bs><bs>|@|", "@|", 3, ""},
		{"nor after all was deleted", "@m|<esc><c-u>@|", "@|", 3, ""},
		{"or thrown away", "@m|<esc><esc>@|", "@|", 3, ""},
		{"tab opens it again", "@m|<esc><tab>", "@ma|", 3, ""},
		{"typed since: tab looks again", "@m|ake/a<tab>", "@make/all.go |", 0, ""},
		{"written to the end", "@main.go|", "@main.go|", 0, ""},
		{"moving closes it", "@m|<left>", "@|m", 0, ""},
		{"not while moving", "@m<left>|", "@|m", 0, ""},
		{"not in what was sent before", "@m<enter><up>|", "@m|", 0, "@m"},
		{"not while searching", "@m<enter><c-r>m|", "@m|", 0, "@m"},
		{"a menu asked for stays as it is", "@m<tab><tab>|", "@ma|", 3, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Editor{Complete: complete}
			sent := ""
			for i, part := range strings.Split(tt.script, "|") {
				if draft, at, ok := e.CompletionContext(); i > 0 && ok {
					e.ShowMenu(complete(draft, at))
				}
				if a := play(t, &e, part); a.Kind == Submit {
					sent = a.Text
				}
			}
			menu := 0
			if e.menu != nil {
				menu = len(e.menu.choices)
			}
			if got := marked(&e); got != tt.want || menu != tt.menu || sent != tt.sent {
				t.Errorf("got %q with %d choices, sent %q; want %q with %d, %q", got, menu, sent, tt.want, tt.menu, tt.sent)
			}
		})
	}
}

func TestCompletionOutOfBoundsIsIgnored(t *testing.T) {
	for _, start := range []int{-1, 3} {
		e := Editor{Complete: func(string, int) (int, []Choice) { return start, []Choice{{Text: "x"}} }}
		play(t, &e, "ab<tab>")
		if got := marked(&e); got != "ab|" {
			t.Errorf("start %d: %q", start, got)
		}
	}
}

func TestAQuestionHasNoHistory(t *testing.T) {
	e := Editor{IsQuestion: true, Complete: func(string, int) (int, []Choice) { return 0, []Choice{{Text: "x"}} }}
	play(t, &e, "2<enter>")
	for _, script := range []string{"<up>", "<tab>", "<c-r>", "a<bs>", "<enter>"} {
		if a := play(t, &e, script); a.Kind != None || marked(&e) != "|" {
			t.Errorf("%s: action %v, draft %q", script, a.Kind, marked(&e))
		}
	}
	if a := play(t, &e, "<c-r>yes<enter>"); a.Text != "yes" {
		t.Errorf("answer %q", a.Text)
	}
	if a := play(t, &e, "<s-tab>"); a.Kind != CycleMode {
		t.Errorf("shift+tab: %v", a.Kind)
	}
	if a := play(t, &e, "<esc>"); a.Kind != Cancel {
		t.Errorf("esc: %v", a.Kind)
	}
}

func TestADraftCanBePutBack(t *testing.T) {
	var e Editor
	queued := play(t, &e, "do <paste:a\rb>!<enter>").Draft
	play(t, &e, "<paste:1\r2\r3>x")
	e.SetDraft(queued)
	if got := marked(&e); got != "do [copy 2 lines]!|" {
		t.Errorf("shown %q", got)
	}
	if a := play(t, &e, "<enter>"); a.Text != "do a\nb!" {
		t.Errorf("sent %q", a.Text)
	}
}

func TestTextEditedElsewhere(t *testing.T) {
	var e Editor
	play(t, &e, "a <paste:x\ry>")
	before := marked(&e)
	e.SetText(e.Text())
	if got := marked(&e); got != before {
		t.Errorf("unchanged text: %q, want %q", got, before)
	}
	e.SetText("one\r\ntwo")
	if got := marked(&e); got != "one\ntwo|" {
		t.Errorf("new text: %q", got)
	}
	long := strings.Repeat("line\n", 5000)
	e.SetText(long)
	if got := marked(&e); got != "[copy 5000 lines]|" {
		t.Errorf("long text: %q", got)
	}
	if a := play(t, &e, "<enter>"); a.Text != long {
		t.Errorf("sent %d bytes, want %d", len(a.Text), len(long))
	}
}

func TestALongPasteCostsNothingAfterwards(t *testing.T) {
	for _, text := range []string{strings.Repeat("a line of text\r", 5000), strings.Repeat("x", 5<<20)} {
		var e Editor
		e.Paste(text)
		allocated := testing.AllocsPerRun(100, func() {
			e.HandleKey(RuneKey('a'))
			e.View(80)
			e.HandleKey(Key{Name: Backspace})
		})
		if allocated > 100 {
			t.Errorf("a key after a paste of %d bytes allocates %v times", len(text), allocated)
		}
		rows, _, _ := e.View(80)
		if len(rows) != 1 || !strings.HasPrefix(rows[0], "[copy ") {
			t.Errorf("shown as %q", rows)
		}
		if a := e.HandleKey(Key{Name: Enter}); a.Text != normalizeLineEnds(text) {
			t.Errorf("sent %d bytes of %d", len(a.Text), len(text))
		}
	}
}

func TestATypedDraftIsBounded(t *testing.T) {
	e := Editor{draft: Draft{raw: strings.Repeat("x", maxDraft)}}
	play(t, &e, "abc")
	if len(e.Text()) != maxDraft {
		t.Errorf("%d bytes", len(e.Text()))
	}
}

func TestUndoIsBounded(t *testing.T) {
	e := Editor{draft: Draft{raw: strings.Repeat("x", maxDraft-100)}}
	for range 20 {
		play(t, &e, "a<right>")
	}
	if e.undo.bytes > maxUndo || len(e.undo.snapshots) == 0 {
		t.Errorf("%d bytes in %d steps", e.undo.bytes, len(e.undo.snapshots))
	}
}

func TestWhatWasPastedIsPutBackAsOneUnit(t *testing.T) {
	var e, back Editor
	play(t, &e, "see <paste:x\ry> and <paste:p\rq\rr>!")
	was := Join(e.Draft(), e.Draft())
	back.SetFolded(was.Text(), was.Pastes())
	if got, want := back.Draft().String(), "see [copy 2 lines] and [copy 3 lines]!\nsee [copy 2 lines] and [copy 3 lines]!"; got != want {
		t.Errorf("put back as %q, want %q", got, want)
	}
	if back.Text() != was.Text() {
		t.Errorf("put back %q, want %q", back.Text(), was.Text())
	}
	back.SetFolded("x and y", []string{"x\ny", ""}) // what is not there any more
	if got := back.Draft().String(); got != "x and y" {
		t.Errorf("put back as %q", got)
	}
}

func TestWhatWasAnsweredIsFoundBySearchingAndNotByUp(t *testing.T) {
	e := Editor{Earlier: func() []string { return []string{"from before"} }}
	play(t, &e, "sent<enter><c-r>before<esc>")
	e.AddSearchable(Draft{raw: "n use another name"})
	if play(t, &e, "<up>"); e.Text() != "sent" {
		t.Errorf("Up brings %q", e.Text())
	}
	if play(t, &e, "<esc><c-r>another"); e.Text() != "n use another name" {
		t.Errorf("Ctrl+R brings %q", e.Text())
	}
}

func TestWhatWasSentHereIsFoundOnceAndWhatWasSentMeanwhileToo(t *testing.T) {
	before := []string{"make one"}
	e := Editor{Earlier: func() []string { return before }}
	play(t, &e, "<c-r>make<esc>make two<enter>")
	before = append(before, "make two", "make three elsewhere")
	for _, want := range []string{"make two", "make three elsewhere", "make one", "make one"} {
		if e.search == nil {
			play(t, &e, "<c-r>make")
		} else {
			play(t, &e, "<c-r>")
		}
		if e.Text() != want {
			t.Errorf("found %q, want %q", e.Text(), want)
		}
	}
}

func TestEnterAtASearchThatFailedSendsNothing(t *testing.T) {
	var e Editor
	play(t, &e, "!make<enter>")
	if a := play(t, &e, "<c-r>makex<enter>"); a.Kind == Submit {
		t.Errorf("%q was sent", a.Text)
	}
	if a := play(t, &e, "<enter>"); a.Text != "!make" {
		t.Errorf("then %q was sent", a.Text)
	}
}

// TestAPasteOfSeveralLinesIsNotTyped: nor is it after the draft was edited, recalled or
// put back.
func TestAPasteOfSeveralLinesIsNotTyped(t *testing.T) {
	typed := func(d Draft) (all string) {
		for _, p := range d.Words() {
			if p.Origin == chat.OriginTyped {
				all += p.Text
			}
		}
		return all
	}
	var e Editor
	e.SetText("sum up ")
	e.Paste("https://one.org ")
	e.Paste("see https://two.org\nand https://three.org\n")
	e.Paste("and four.org")
	want := "sum up https://one.org and four.org"
	for name, d := range map[string]Draft{
		"as written": e.Draft(), "queued": Join(e.Draft()), "put back": NewDraft(e.Text(), e.Draft().Pastes()),
	} {
		if got := strings.ReplaceAll(typed(d), "\n", ""); got != want || d.Words().Text() != e.Text() {
			t.Errorf("%s: %q counts as typed of %q, want %q", name, got, d.Words().Text(), want)
		}
	}
	for _, text := range []string{"", "a", "ü\nb"} {
		if d := NewDraft(text, nil); d.Words().Text() != d.Text() {
			t.Errorf("%q became %q", d.Text(), d.Words().Text())
		}
	}
}
