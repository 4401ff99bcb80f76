package lineedit

import (
	"strings"
	"testing"
)

// TestVim shows the draft after keys, with a bar before the character that the cursor is on.
func TestVim(t *testing.T) {
	for keys, want := range map[string]string{
		"abc<esc>":                 "ab|c",
		"abc<esc>h":                "a|bc",
		"abc<esc>3hl":              "a|bc",
		"abc<esc>9l":               "ab|c",
		"ab cd ef<esc>0w":          "ab |cd ef",
		"ab cd ef<esc>02w":         "ab cd |ef",
		"ab.cd ef<esc>0w":          "ab|.cd ef",
		"ab cd ef<esc>b":           "ab cd |ef",
		"ab cd ef<esc>bb":          "ab |cd ef",
		"ab cd ef<esc>0e":          "a|b cd ef",
		"ab cd ef<esc>0ee":         "ab c|d ef",
		"ab cd ef<esc>02e":         "ab c|d ef",
		"  ab<esc>^":               "  |ab",
		"  ab<esc>0":               "|  ab",
		"abc<esc>0$":               "ab|c",
		"abc<esc>0x":               "|bc",
		"abc<esc>02x":              "|c",
		"abc<esc>X":                "a|c",
		"ab cd<esc>0dw":            "|cd",
		"ab cd ef<esc>02dw":        "|ef",
		"ab cd ef<esc>0d2w":        "|ef",
		"ab cd<esc>bdw":            "ab| ",
		"ab<c-j>cd<esc>k0dw":       "|\ncd",
		"ab cd<esc>bd$":            "ab| ",
		"ab cd<esc>bD":             "ab| ",
		"ab cd<esc>0wd0":           "|cd",
		"ab cd<esc>0de":            "| cd",
		"ab cd<esc>0cwxy<esc>":     "x|y cd",
		"ab cd ef<esc>0c2wx<esc>":  "|x ef",
		"ab cd<esc>bCx<esc>":       "ab |x",
		"ab<c-j>cd<esc>ccx<esc>":   "ab\n|x",
		"a<c-j>b<c-j>c<esc>kdd":    "a\n|c",
		"a<c-j>b<c-j>c<esc>dd":     "a\n|b",
		"a<c-j>b<c-j>c<esc>k2dd":   "|a",
		"a<c-j>b<c-j>c<esc>kdk":    "|c",
		"a<c-j>b<c-j>c<esc>kkdj":   "|c",
		"a<esc>dd":                 "|",
		"a<c-j>b<esc>kyyp":         "a\n|a\nb",
		"a<c-j>b<esc>yyP":          "a\n|b\nb",
		"a<c-j>b<esc>kddp":         "b\n|a",
		"abc<esc>0xp":              "b|ac",
		"abc<esc>0x$P":             "b|ac",
		"ab cd<esc>0yw$p":          "ab cdab| ",
		"ab<esc>0ylP":              "|aab",
		"abc<esc>0x3p":             "baa|ac",
		"abc<esc>0xu":              "|abc",
		"abc<esc>ix<esc>":          "ab|xc",
		"abc<esc>0ax<esc>":         "a|xbc",
		"  ab<esc>Ix<esc>":         "  |xab",
		"abc<esc>0Ax<esc>":         "abc|x",
		"ab<esc>ocd<esc>":          "ab\nc|d",
		"ab<esc>Ocd<esc>":          "c|d\nab",
		"abc<esc>0rx":              "|xbc",
		"abc<esc>02rx":             "x|xc",
		"abc<esc>09rx":             "|abc",
		"aBc<esc>0~~":              "Ab|c",
		"aBc<esc>03~":              "Ab|C",
		"a.b.c<esc>0f.":            "a|.b.c",
		"a.b.c<esc>02f.":           "a.b|.c",
		"a.b.c<esc>0t.":            "|a.b.c",
		"a.b.c<esc>F.":             "a.b|.c",
		"a.b.c<esc>T.":             "a.b.|c",
		"a.b.c<esc>0f.;":           "a.b|.c",
		"a.b.c<esc>0f.;,":          "a|.b.c",
		"a.b.c<esc>0df.":           "|b.c",
		"a.b.c<esc>0dt.":           "|.b.c",
		"a.b.c<esc>dF.":            "a.b|c",
		"a.b.c<esc>0fz":            "|a.b.c",
		"a.b.c<esc>Fz":             "a.b.|c",
		"abcd<esc>0x.":             "|cd",
		"ab cd ef<esc>0dw.":        "|ef",
		"ab cd<esc>0cwx<esc>w.":    "x |x",
		"ab<esc>Axy<esc>.":         "abxyx|y",
		"ab<esc>0d<esc>x":          "|b",
		"ab cd<esc>0d3<esc>l":      "a|b cd",
		"中文 字<esc>0x":              "|文 字",
		"中文 字<esc>0w":              "中文 |字",
		"ab<esc>0<paste:x\ny\n>ic": "[copy 2 lines]c|ab",
		"ab<esc>0<bs>l<bs>":        "|ab",
		"ab<esc>0<del>":            "|b",
		"ab<esc>z":                 "a|b",
		"ab<esc>dz":                "a|b",
		"ab<esc><esc>":             "a|b",
		"first<enter>ab<esc>kdd":   "|",
		"ab<esc>0yyjp":             "ab\n|ab",
		"a<c-j>b<esc>k0yjp":        "a\n|a\nb\nb",
		"ab<esc>xxx":               "|",
		"ab<enter>cd":              "cd|",
	} {
		e := &Editor{Vim: true}
		play(t, e, keys)
		d := e.draft
		got := Draft{d.raw[:e.cursor], d.pastes}.String() + "|" + Draft{d.raw[e.cursor:], d.pastes}.String()
		if got != want {
			t.Errorf("%s: %q, want %q", keys, got, want)
		}
	}
}

// TestEscInVim leads to normal mode, then does nothing to a draft; at a question it is always an answer.
func TestEscInVim(t *testing.T) {
	e := &Editor{Vim: true}
	if a := play(t, e, "<esc>"); a.Kind != Cancel || e.IsNormalMode() {
		t.Errorf("on an empty draft: %v", a)
	}
	play(t, e, "ab")
	if !e.HandlesEsc() {
		t.Error("insert mode takes Esc")
	}
	if a := play(t, e, "<esc><esc>"); a.Kind != None || e.Text() != "ab" || e.HandlesEsc() {
		t.Errorf("in normal mode: %v, %q", a, e.Text())
	}
	if a := play(t, e, "<enter>"); a.Kind != Submit || e.IsNormalMode() {
		t.Errorf("Enter: %v", a)
	}
	q := &Editor{Vim: true, IsQuestion: true}
	if a := play(t, q, "ab<esc><esc>"); a.Kind != Clear {
		t.Errorf("at a question: %v", a)
	}
}

// FuzzVim presses keys, which never panics and leaves the cursor inside the draft.
func FuzzVim(f *testing.F) {
	f.Add("ab cd<esc>0dwp.u")
	f.Add("中文<esc>2dd3pfxt;,~r中.")
	f.Fuzz(func(t *testing.T, keys string) {
		e := &Editor{Vim: true}
		for _, r := range strings.ReplaceAll(keys, "<esc>", "\x1b") {
			k := RuneKey(r)
			if r == '\x1b' {
				k = Key{Name: Escape}
			}
			if e.HandleKey(k); e.cursor < 0 || e.cursor > len(e.draft.raw) || len(e.draft.raw) > maxDraft {
				t.Fatalf("%q: at %d of %d", keys, e.cursor, len(e.draft.raw))
			}
		}
	})
}
