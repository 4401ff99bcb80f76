package term_test

import (
	"bytes"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// shown is what is written of an answer.
func shown(t *testing.T, p term.Palette, answer string) string {
	t.Helper()
	var out bytes.Buffer
	r := term.New(term.Options{Out: &out, Palette: p, Width: func() int { return 40 }})
	if err := r.ShowAnswer(event.MessageAdded{Message: chat.TextMessage(chat.Assistant, answer)}, false); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLinksCanBeClicked(t *testing.T) {
	on := term.Palette{Level: term.Basic, Links: true}
	const begin, end = "\x1b]8;;https://example.org/a?b=c\x1b\\", "\x1b]8;;\x1b\\"
	got := shown(t, on, "See [the page](https://example.org/a?b=c) now.\n")
	if strings.Count(got, begin) < 2 || strings.Count(got, end) < 2 || !strings.Contains(got, "now.") {
		t.Errorf("%q", got)
	}
	if at := strings.LastIndex(got, "\x1b]8;;"); !strings.HasPrefix(got[at:], end) {
		t.Errorf("a link does not end: %q", got)
	}
	plain := strings.NewReplacer(begin, "", end, "").Replace(got)
	if want := shown(t, term.Palette{Level: term.Basic}, "See [the page](https://example.org/a?b=c) now.\n"); plain != want {
		t.Errorf("without the links it is %q, want %q", plain, want)
	}
	for text, want := range map[string]string{
		"At https://example.org/a?b=c.\n":           "At " + begin + "https://example.org/a?b=c" + end + ".",
		"(https://example.org/a?b=c)\n":             "(" + begin + "https://example.org/a?b=c" + end + ")",
		"<https://example.org/a?b=c>, xhttps://x\n": begin + "https://example.org/a?b=c" + end + ", xhttps://x",
		"![pic](https://example.org/a?b=c)!\n":      begin,
		"http and https:// <http> <b> ! ![\n":       "http and https:// <http> <b> ! ![",
	} {
		if got := shown(t, on, text); !strings.Contains(got, want) {
			t.Errorf("%q is %q, without %q", text, got, want)
		}
	}
	for _, address := range []string{"javascript:alert(1)", "file:///etc/passwd", "../x", "https://a\x1b]8;;b", "https://a\u202eb", "https://" + strings.Repeat("a", 3000)} {
		if got := shown(t, on, "["+"x]("+address+")\n"); strings.Contains(got, "\x1b]8;") {
			t.Errorf("%q can be clicked: %q", address, got)
		}
	}
	if got := shown(t, term.Palette{}, "[x](https://a.b)\n"); strings.Contains(got, "\x1b") {
		t.Errorf("without a terminal: %q", got)
	}
}

func TestTerminalsKnownToHaveLinks(t *testing.T) {
	for env, want := range map[string]bool{
		"TERM=xterm-256color": false, "TERM=linux TERM_PROGRAM=vscode": false, "TERM=dumb KITTY_WINDOW_ID=1": false, "TERM=screen": false,
		"TERM=xterm-kitty": true, "TERM=xterm-256color TERM_PROGRAM=iTerm.app": true, "TERM=xterm-256color VTE_VERSION=7003": true,
		"TERM=xterm-256color VTE_VERSION=4602": false, "TERM=xterm-256color WT_SESSION=x": true, "KONSOLE_VERSION=220400": true,
	} {
		vars := make(map[string]string)
		for _, v := range strings.Fields(env) {
			name, value, _ := strings.Cut(v, "=")
			vars[name] = value
		}
		if got := term.SupportsLinks(func(name string) string { return vars[name] }); got != want {
			t.Errorf("%s: %v", env, got)
		}
	}
}

func TestOwnColours(t *testing.T) {
	for _, tt := range []struct {
		level  term.Level
		colour string
		want   string
	}{
		{term.TrueColour, "#1a7f37", "\x1b[38;2;26;127;55mx\x1b[0m"},
		{term.Colour256, "#ff0000", "\x1b[38;5;196mx\x1b[0m"},
		{term.Colour256, "130", "\x1b[38;5;130mx\x1b[0m"},
		{term.Basic, "12", "\x1b[94mx\x1b[0m"},
		{term.Basic, "#ff0000", "\x1b[32mx\x1b[0m"}, // it has no such colour
		{term.None, "#ff0000", "x"},
	} {
		p, err := (term.Palette{Level: tt.level}).WithColours(map[string]string{"good": tt.colour})
		if got := p.Paint(ink.Good, "x"); got != tt.want || err != nil {
			t.Errorf("%v %s: %q, %v, want %q", tt.level, tt.colour, got, err, tt.want)
		}
		if other := p.Paint(ink.Bad, "x"); other != (term.Palette{Level: tt.level}).Paint(ink.Bad, "x") {
			t.Errorf("another colour is %q", other)
		}
	}
	p, err := (term.Palette{Level: term.TrueColour}).WithColours(map[string]string{"good": "green", "nice": "1", "bad": "#12345", "warn": "256", "tool": "#00ff00"})
	if err == nil || strings.Count(err.Error(), "ui.colors: ") != 4 {
		t.Errorf("%v", err)
	}
	if got := p.Paint(ink.Tool, "x"); got != "\x1b[38;2;0;255;0mx\x1b[0m" {
		t.Errorf("a good one beside bad ones: %q", got)
	}
}
