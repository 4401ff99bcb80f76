package term_test

import (
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

func TestPaletteFor(t *testing.T) {
	for _, c := range []struct {
		env  string
		tty  bool
		want term.Palette
	}{
		{"", true, term.Palette{Level: term.Basic}},
		{"", false, term.Palette{}},
		{"TERM=xterm", true, term.Palette{Level: term.Basic}},
		{"TERM=xterm-256color", true, term.Palette{Level: term.Colour256}},
		{"TERM=xterm-256color COLORTERM=truecolor", true, term.Palette{Level: term.TrueColour}},
		{"TERM=xterm-direct", true, term.Palette{Level: term.TrueColour}},
		{"TERM=dumb", true, term.Palette{}},
		{"TERM=vt100", true, term.Palette{}},
		{"TERM=xterm NO_COLOR=1", true, term.Palette{}},
		{"TERM=xterm NO_COLOR=1 CLICOLOR_FORCE=1", true, term.Palette{}},
		{"TERM=xterm CLICOLOR_FORCE=1", false, term.Palette{Level: term.Basic}},
		{"TERM=xterm CLICOLOR_FORCE=0", false, term.Palette{}},
		{"TERM=xterm CLICOLOR=0", true, term.Palette{}},
		{"TERM=xterm CLICOLOR=0 CLICOLOR_FORCE=1", true, term.Palette{Level: term.Basic}},
		{"TERM=xterm FORCE_COLOR=1", false, term.Palette{Level: term.Basic}},
		{"TERM=xterm FORCE_COLOR=2", false, term.Palette{Level: term.Colour256}},
		{"TERM=dumb FORCE_COLOR=3", false, term.Palette{Level: term.TrueColour}},
		{"TERM=xterm FORCE_COLOR=0", true, term.Palette{}},
		{"TERM=xterm NO_COLOR=1 FORCE_COLOR=1", true, term.Palette{}},
		{"COLORFGBG=0;15", true, term.Palette{Level: term.Basic, Light: true}},
		{"COLORFGBG=0;default;7", true, term.Palette{Level: term.Basic, Light: true}},
		{"COLORFGBG=15;0", true, term.Palette{Level: term.Basic}},
		{"COLORFGBG=0;8", true, term.Palette{Level: term.Basic}},
		{"COLORFGBG=odd", true, term.Palette{Level: term.Basic}},
	} {
		env := func(name string) string {
			for pair := range strings.FieldsSeq(c.env) {
				if k, v, _ := strings.Cut(pair, "="); k == name {
					return v
				}
			}
			return ""
		}
		if got := term.DetectPalette(env, c.tty); got != c.want {
			t.Errorf("%q tty=%v gives %+v, want %+v", c.env, c.tty, got, c.want)
		}
	}
}

// What the program says has the same sixteen colours on every terminal.
func TestOwnWordsKeepTheirColours(t *testing.T) {
	want := map[ink.Role]string{ink.Dim: "2", ink.Tool: "34", ink.Good: "32", ink.Bad: "31", ink.Warn: "33", ink.Done: "36"}
	for _, level := range []term.Level{term.Basic, term.Colour256, term.TrueColour} {
		for _, light := range []bool{false, true} {
			p := term.Palette{Level: level, Light: light}
			for role, code := range want {
				if got := p.Paint(role, "x"); got != "\x1b["+code+"mx\x1b[0m" {
					t.Errorf("level %d, role %d: %q", level, role, got)
				}
			}
		}
	}
	if got := (term.Palette{}).Paint(ink.Bad, "x"); got != "x" {
		t.Errorf("without colours: %q", got)
	}
}

func TestRicherTerminalsHaveRicherCode(t *testing.T) {
	text := "```go\nfunc x\n```"
	for want, p := range map[string]term.Palette{
		"\x1b[35mfunc\x1b[0m x":               {Level: term.Basic},
		"\x1b[38;5;176mfunc\x1b[0m x":         {Level: term.Colour256},
		"\x1b[38;2;198;120;221mfunc\x1b[0m x": {Level: term.TrueColour},
		"\x1b[38;2;166;38;164mfunc\x1b[0m x":  {Level: term.TrueColour, Light: true},
		"[ANSWER]\n```go\nfunc x\n```\n":      {},
	} {
		if got := play(t, p, told(event.TextDelta{Text: text}, said(text))); !strings.Contains(got, want) {
			t.Errorf("%+v: %q lacks %q", p, got, want)
		}
	}
}

// TestThemes: what is said can be read on a light background, and without
// colours weight alone tells things apart.
func TestThemes(t *testing.T) {
	for _, test := range []struct {
		level term.Level
		theme string
		role  ink.Role
		want  string
	}{
		{term.TrueColour, "dark", ink.Warn, "\x1b[33mx\x1b[0m"},
		{term.TrueColour, "light", ink.Warn, "\x1b[38;2;154;103;0mx\x1b[0m"},
		{term.Colour256, "light", ink.Good, "\x1b[38;5;28mx\x1b[0m"},
		{term.Basic, "light", ink.Warn, "\x1b[33mx\x1b[0m"},
		{term.TrueColour, "mono", ink.Bad, "\x1b[1mx\x1b[0m"},
		{term.TrueColour, "mono", ink.String, "x"},
		{term.TrueColour, "mono", ink.Code, "\x1b[1mx\x1b[0m"},
		{term.None, "light", ink.Bad, "x"},
	} {
		if got := (term.Palette{Level: test.level}).WithTheme(test.theme).Paint(test.role, "x"); got != test.want {
			t.Errorf("%v %s %v: %q, want %q", test.level, test.theme, test.role, got, test.want)
		}
	}
	if p := (term.Palette{Level: term.TrueColour, Light: true}).WithTheme("auto"); !p.Light {
		t.Error("auto forgets what the terminal said")
	}
}
