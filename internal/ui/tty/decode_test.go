//go:build unix

package tty

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/ui/lineedit"
)

// said writes events down: a, ctrl+a, alt+up, paste("x"), focus(true).
func said(events []Event) string {
	var words []string
	for _, e := range events {
		switch e := e.(type) {
		case Key:
			words = append(words, keySaid(e))
		case Paste:
			words = append(words, fmt.Sprintf("paste(%q)", e.Text))
		case Focus:
			words = append(words, fmt.Sprintf("focus(%v)", e.Gained))
		case Background:
			words = append(words, map[bool]string{true: "background(light)", false: "background(dark)"}[e.Light])
		default:
			words = append(words, fmt.Sprintf("%T", e))
		}
	}
	return strings.Join(words, " ")
}

var names = map[lineedit.Name]string{
	lineedit.Enter: "enter", lineedit.Tab: "tab", lineedit.Escape: "esc", lineedit.Backspace: "backspace",
	lineedit.Delete: "delete", lineedit.Insert: "insert", lineedit.Up: "up", lineedit.Down: "down",
	lineedit.Left: "left", lineedit.Right: "right", lineedit.Home: "home", lineedit.End: "end",
	lineedit.PageUp: "pageup", lineedit.PageDown: "pagedown",
}

func keySaid(k Key) string {
	s := names[k.Name]
	if k.Name == lineedit.Char {
		s = string(k.Rune)
	}
	for _, m := range []struct {
		mod  lineedit.Mod
		name string
	}{{lineedit.Shift, "shift+"}, {lineedit.Alt, "alt+"}, {lineedit.Ctrl, "ctrl+"}} {
		if k.Mod&m.mod != 0 {
			s = m.name + s
		}
	}
	return s
}

var decodings = []struct{ in, want string }{
	{"abc", "a b c"},
	{"é你👩", "é 你 👩"},
	{"\r\t\x7f\n\x08", "enter tab backspace ctrl+j ctrl+h"},
	{"\x01\x1a\x1f\x00\x1c", "ctrl+a ctrl+z ctrl+_ ctrl+  ctrl+\\"},
	{"\x1b", "esc"},
	{"\x1b\x1b", "esc esc"},
	{"\x1b\x1b\x1b", "esc esc esc"},
	{"\x1bb\x1bB\x1b\r\x1b\x7f\x1b\x01", "alt+b alt+B alt+enter alt+backspace ctrl+alt+a"},
	{"\x1b你", "alt+你"},
	{"\x1b[", "alt+["},
	{"\x1bO", "alt+O"},
	{"\x1b]", "alt+]"},
	{"\x1b\x1b[", "esc alt+["},
	{"\x1b[\r", "alt+[ enter"},
	{"\x1bO\r", "alt+O enter"},
	{"\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F", "up down right left home end"},
	{"\x1bOA\x1bOB\x1bOC\x1bOD\x1bOH\x1bOF\x1bOM", "up down right left home end enter"},
	{"\x1b[1;5A\x1b[1;3B\x1b[1;2C\x1b[1;6D\x1bO5D", "ctrl+up alt+down shift+right ctrl+shift+left ctrl+left"},
	{"\x1b[a\x1bOa\x1b[3$\x1b[3^\x1b[3@", "shift+up ctrl+up shift+delete ctrl+delete ctrl+shift+delete"},
	{"\x1b\x1b[A\x1b\x1bOB", "alt+up alt+down"},
	{"\x1b\x1b[I", "esc focus(true)"},
	{"\x1b\x1b[200~x\x1b[201~", `esc paste("x")`},
	{"\x1b[1~\x1b[2~\x1b[3~\x1b[4~\x1b[5~\x1b[6~\x1b[7~\x1b[8~", "home insert delete end pageup pagedown home end"},
	{"\x1b[3;5~", "ctrl+delete"},
	{"\x1b[Z\x1b[9;2u\x1b[27;2;9~", "shift+tab shift+tab shift+tab"},
	{"\x1b[13;2u\x1b[13;3u\x1b[13;5u\x1b[27;2;13~", "shift+enter alt+enter ctrl+enter shift+enter"},
	{"\x1b[13u\x1b[27u\x1b[127u\x1b[57414u", "enter esc backspace enter"},
	{"\x1b[99;5u\x1b[97;3u\x1b[97;2u\x1b[97:65;2u\x1b[49:33;2u", "ctrl+c alt+a A A !"},
	{"\x1b[109;5u\x1b[105;5u\x1b[91;5u\x1b[106;5u", "enter tab esc ctrl+j"},
	{"\x1b[45:95;6u\x1b[27;5;95~", "ctrl+_ ctrl+_"},
	{"\x1b[99;6u", "ctrl+shift+c"},
	{"\x1b[97;1:3ub\x1b[1;1:3A", "b"},
	{"\x1b[97;9ub", "b"},
	{"\x1b[57399u\x1b[57413u\x1bOp\x1bOk", "0 + 0 +"},
	{"\x1b[57441ux", "x"},
	{"\x1b[I\x1b[O", "focus(true) focus(false)"},
	{"\x1b[<0;10;20Mx\x1b[<0;10;20mx", "x x"},
	{"\x1b[M !!x", "x"},
	{"\x1b[[Ax\x1b[15~x\x1bOPx", "x x x"},
	{"\x1b[?1;2cx\x1b[?2026;2$yx\x1b[12;34Rx\x1b[?1ux", "x x x x"},
	{"\x1b]11;rgb:0000/0000/0000\ax\x1b]11;rgb:f/f/f\x1b\\x", "background(dark) x background(light) x"},
	{"\x1b]11;rgb:fdfd/f6f6/e3e3\x1b\\\x1b]11;rgba:00/2b/36/ff\a", "background(light) background(dark)"},
	{"\x1b]11;rgb:1/2\ax\x1b]11;#ffffff\ax\x1b]11;rgb:00000/0/0\ax\x1b]11;rgb:g/0/0\ax\x1b]10;rgb:f/f/f\ax\x1b]11;\ax", "x x x x x x"},
	{"\x1bP>|term 1.0\x1b\\x\x1b_Gi=1\x1b\\x", "x x"},
	{"\x1b[1;\x03", "ctrl+c"},
	{"\x1b]11;rgb\ra", "enter a"},
	{"\x1b[1;5\x1b[A", "up"},
	{"\xff\xe4\xbda", "\uFFFD \uFFFD \uFFFD a"},
	{"a\xe4\xbd", "a \uFFFD"},
	{"\u0085x\u009bx", "x x"},
	{"\x1b[200~a\rb\r\x1b[201~c", `paste("a\rb\r") c`},
	{"\x1b[200~\x1b[201~", `paste("")`},
	{"\x1b[200~a\x1b[31m\x1b[200~\x03\x1b[20\x1b[201~x", `paste("a\x1b[31m\x1b[200~\x03\x1b[20") x`},
	{"\x1b[200~\xff\x1b[201~", "paste(\"\uFFFD\")"},
	{"\x1b[201~x", "x"},
}

func TestDecode(t *testing.T) {
	for _, tt := range decodings {
		var d Decoder
		got := said(append(d.Feed([]byte(tt.in)), d.Flush()...))
		if got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.in, got, tt.want)
		}
		if d.HasPending() {
			t.Errorf("%q: still waiting after Flush", tt.in)
		}
	}
}

func TestHowInputIsCutChangesNothing(t *testing.T) {
	var all strings.Builder
	for _, tt := range decodings {
		all.WriteString(tt.in)
	}
	ins := []string{all.String()}
	for _, tt := range decodings {
		ins = append(ins, tt.in, tt.in+"x", "x"+tt.in)
	}
	for _, in := range ins {
		whole := decodeCut(in, len(in))
		if got := decodeCut(in, 1); !reflect.DeepEqual(got, whole) {
			t.Errorf("%q byte by byte:\n got %s\nwant %s", in, said(got), said(whole))
		}
		for i := range len(in) {
			if got := decodeAt(in, i); !reflect.DeepEqual(got, whole) {
				t.Errorf("%q cut at %d:\n got %s\nwant %s", in, i, said(got), said(whole))
			}
		}
	}
}

func decodeCut(in string, size int) (events []Event) {
	var d Decoder
	for len(in) > 0 {
		n := min(size, len(in))
		events = append(events, d.Feed([]byte(in[:n]))...)
		in = in[n:]
	}
	return append(events, d.Flush()...)
}

func decodeAt(in string, i int) []Event {
	var d Decoder
	events := append(d.Feed([]byte(in[:i])), d.Feed([]byte(in[i:]))...)
	return append(events, d.Flush()...)
}

func TestASequenceThatComesInTimeIsOne(t *testing.T) {
	var d Decoder
	if got := d.Feed([]byte("\x1b")); len(got) != 0 || !d.HasPending() {
		t.Fatalf("lone escape: %s, waiting %v", said(got), d.HasPending())
	}
	if got := said(d.Feed([]byte("[A"))); got != "up" {
		t.Errorf("the rest: %s", got)
	}
	if d.HasPending() {
		t.Error("waiting for more")
	}
}

func TestHalfASequenceIsWaitedForHoweverLong(t *testing.T) {
	var d Decoder
	d.Feed([]byte("\x1b[1;"))
	if d.HasPending() || len(d.Flush()) != 0 {
		t.Error("half a sequence became something")
	}
	if got := said(d.Feed([]byte("5Ax"))); got != "ctrl+up x" {
		t.Errorf("the rest: %s", got)
	}
}

func TestAPasteIsWaitedForButNotForEver(t *testing.T) {
	var d Decoder
	d.Feed([]byte("\x1b[200~some"))
	if d.HasPending() || len(d.Flush()) != 0 {
		t.Error("half a paste became something")
	}
	d.Feed([]byte(" text\x03"))
	if !d.HasPending() {
		t.Fatal("Ctrl+C in a paste that does not go on is not a key")
	}
	if got := said(d.Flush()); got != `paste("some text") ctrl+c` {
		t.Errorf("got %s", got)
	}
	if got := said(d.Feed([]byte("x"))); got != "x" {
		t.Errorf("afterwards: %s", got)
	}
}

func TestALongPasteIsBounded(t *testing.T) {
	var d Decoder
	d.Feed([]byte("\x1b[200~"))
	piece := []byte(strings.Repeat("x", 1<<20))
	for range maxPaste/len(piece) + 2 {
		d.Feed(piece)
	}
	p, ok := d.Feed([]byte(pasteEnd))[0].(Paste)
	if !ok || len(p.Text) != maxPaste || !p.Truncated {
		t.Errorf("paste of %d bytes, cut %v", len(p.Text), p.Truncated)
	}
}

func TestAnEndlessSequenceIsDropped(t *testing.T) {
	var d Decoder
	d.Feed([]byte("\x1b]"))
	piece := []byte(strings.Repeat("x", 64<<10))
	for range 2 * maxSequence / len(piece) {
		d.Feed(piece)
	}
	if len(d.buf) > maxSequence {
		t.Errorf("%d bytes held", len(d.buf))
	}
}

func FuzzDecode(f *testing.F) {
	for _, tt := range decodings {
		f.Add([]byte(tt.in), 1)
	}
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		whole := decodeCut(string(in), len(in))
		if got := decodeCut(string(in), 1+max(0, size)%8); !reflect.DeepEqual(got, whole) {
			t.Errorf("%q in pieces of %d:\n got %s\nwant %s", in, size, said(got), said(whole))
		}
		for _, e := range whole {
			switch e := e.(type) {
			case Key:
				if e.Name == lineedit.Char && (!utf8.ValidRune(e.Rune) || e.Rune < ' ' || e.Rune >= 0x7f && e.Rune < 0xa0) {
					t.Errorf("%q: a key types %U", in, e.Rune)
				}
			case Paste:
				if !utf8.ValidString(e.Text) {
					t.Errorf("%q: paste %q", in, e.Text)
				}
			}
		}
	})
}

func TestTheLateTailOfASequenceIsKnown(t *testing.T) {
	for in, want := range map[string]int{
		"[A": 2, "[1;5C": 5, "OA": 2, "[200~x": 5, "[": 0, "O": 0, "": 0, "hello": 0, "[ab": 2, "Ok": 0, "OKAY": 0, "[1": 0, "[\x01": 0,
	} {
		if got := tailLength([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}
