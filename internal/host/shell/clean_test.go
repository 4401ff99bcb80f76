package shell_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/core/sanitize"
	"coder/internal/host/shell"
)

func TestClean(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "héllo 世界\n\tx\n", "héllo 世界\n\tx\n"},
		{"invalid and NUL", "a\x00b\xff", "ab\ufffd"},
		{"colour", "\x1b[1;31mred\x1b[0m!", "red!"},
		{"clear, clipboard, title, query, paste end", "\x1b[2J\x1b]52;c;AAAA\a\x1b]0;t\a\x1b[6n\x1b[201~x", "x"},
		{"link", "\x1b]8;;http://a/\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"eight-bit sequences", "a\u009b31mb\u009d0;t\u009cc\u0085d", "abcd"},
		{"charset and reset", "\x1b(B\x1b$(Bx\x1bcy\x1b=z", "xyz"},
		{"device string", "\x1bPq#0~\x1b\\after", "after"},
		{"unclosed title ends with its line", "\x1b]0;title\nnext", "\nnext"},
		{"broken sequence", "\x1b[12\nx\x1b", "\nx"},
		{"sequence in a title", "\x1b]0;a\x1b[31mred", "red"},
		{"windows line ends", "a\r\nb\r\r\n", "a\nb\n"},
		{"progress", "\r1%\r50%\r100%\n", "100%\n"},
		{"progress with erase", "1%\r\x1b[K2%\r\x1b[K", "2%"},
		{"progress cut short", "50%\r", "50%"},
		{"overstrike", "N\bNA\bA_\bx", "NAx"},
		{"backspace at the start", "\b\bx\n\by", "x\ny"},
		{"direction and invisible ones are named", "a\u202eb\u2066\u200b\ufeffc\U000e0041", "a<U+202E>b<U+2066><U+200B><U+FEFF>c<U+E0041>"},
		{"joiners are kept", "👩\u200d💻 ❤\ufe0f", "👩\u200d💻 ❤\ufe0f"},
		{"others", "a\v\f\a\x0e\x7fb", "ab"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := shell.Clean([]byte(tc.in)); got != tc.want {
				t.Errorf("Clean(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestLiveWriter(t *testing.T) {
	for _, tc := range []struct {
		name   string
		writes []string
		want   []string // what each write lets through, and then the flush
		drawn  string   // what is told of lines that are drawn over
	}{
		{"as it comes", []string{"ab", "c\nd"}, []string{"ab", "c\nd", ""}, ""},
		{"half a rune", []string{"\xe4\xb8", "\x96"}, []string{"", "世", ""}, ""},
		{"half a rune last", []string{"a\xe4"}, []string{"a", "\ufffd"}, ""},
		{"half a sequence", []string{"a\x1b[3", "1mb"}, []string{"a", "b", ""}, ""},
		{"windows line end in two", []string{"a\r", "\nb"}, []string{"", "a\nb", ""}, "a;"},
		{"progress", []string{"1%", "\r2%", "\r3%", "\n"}, []string{"1%", "", "", "\n3%\n", ""}, "2%;3%;"},
		{"progress at once", []string{"1%\r2%\r3%"}, []string{"", "3%"}, "3%;"},
		{"progress that goes back first", []string{"1%\r", "2%\r", "\x1b[2Kdone\n"}, []string{"", "", "done\n", ""}, "1%;2%;"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			drawn := ""
			w := &shell.LiveWriter{To: &out, Draw: func(line string) { drawn += line + ";" }}
			for i, s := range append(tc.writes, "") {
				if i == len(tc.writes) {
					w.Flush()
				} else {
					w.Write([]byte(s))
				}
				if got := out.String(); got != tc.want[i] {
					t.Errorf("after write %d: %q, want %q", i, got, tc.want[i])
				}
				out.Reset()
			}
			if drawn != tc.drawn {
				t.Errorf("drawn: %q, want %q", drawn, tc.drawn)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{
		"plain\n\ttext", "a\x00b\xff", "\x1b[2J\x1b]52;c;AAAA\a", "\x1b]0;t\x1b\\x", "1\r2\r\n", "N\bN", "\u009b31m\u009d\u009c", "\x1b\x1b]\x1b[", "a\u202e\u200b\xe2\x80",
	} {
		f.Add([]byte(s), uint8(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, chunk uint8) {
		got := shell.Clean(b)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, forbidden) {
			t.Fatalf("Clean(%q) = %q", b, got)
		}
		if again := shell.Clean([]byte(got)); again != got {
			t.Fatalf("Clean(%q) = %q, again %q", b, got, again)
		}
		var live bytes.Buffer
		w := &shell.LiveWriter{To: &live}
		for rest := b; len(rest) > 0; {
			n := min(int(chunk)+1, len(rest))
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Flush()
		if strings.ContainsFunc(live.String(), forbidden) || !utf8.Valid(live.Bytes()) {
			t.Fatalf("live %q = %q", b, live.String())
		}
		if !bytes.ContainsAny(b, "\r\b") && live.String() != got {
			t.Fatalf("live %q = %q, whole %q", b, live.String(), got)
		}
	})
}

func forbidden(r rune) bool {
	return r != utf8.RuneError && sanitize.IsHazard(r)
}

func TestOutputText(t *testing.T) {
	o := shell.Output{Head: []byte("a世")[:3], Tail: []byte("世b")[1:], Dropped: 7}
	if got := o.Text(); got != "a\n[7 bytes left out]\nb" {
		t.Errorf("Text() = %q", got)
	}
	o = shell.Output{Head: []byte("a世")[:3], Tail: []byte("a世")[3:]}
	if got := o.Text(); got != "a世" {
		t.Errorf("Text() = %q", got)
	}
}
