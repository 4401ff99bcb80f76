package files

import (
	"strings"
	"testing"
)

func TestEditMatchesLoosely(t *testing.T) {
	for _, tc := range []struct {
		name, text, old, new string
		want, how            string
	}{
		{"white space at line ends", "a  \nb\t\nc\n", "a\nb\n", "x\n", "x\nc\n", byTrailing},
		{"white space at the ends of old", "a\nb\nc\n", "a \nb \n", "x\n", "x\nc\n", byTrailing},
		{"last line without end", "a\nb \nc\n", "a \nb", "x", "x\nc\n", byTrailing},
		{"windows file", "a \r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n", byTrailing},
		{"old has windows line ends", "a\nb\nc\n", "a\r\nb\r\n", "x\r\n", "x\nc\n", byLineEnds},
		{"indented less than the file", "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n", "if x {\n\ty()\n}\n", "if z {\n\t\ty()\n}\n", "func f() {\n\tif z {\n\t\t\ty()\n\t}\n}\n", byIndent},
		{"indented more than the file", "if x {\n\ty()\n}\n", "\tif x {\n\t\ty()\n\t}\n", "\tif z {\n\t\ty()\n\t\tw()\n\t}\n", "if z {\n\ty()\n\tw()\n}\n", byIndent},
		{"spaces for tabs", "f() {\n\tg()\n\t\th()\n}\n", "    g()\n        h()\n", "    k()\n        h()\n", "f() {\n\tk()\n\t\th()\n}\n", byIndent},
		{"blank lines stay blank", "\ta()\n\n\tb()\n", "a()\n\nb()\n", "a()\n\nc()\n", "\ta()\n\n\tc()\n", byIndent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, err := edited(editArgs{Path: "f", Old: tc.old, New: tc.new}, []byte(tc.text))
			if err != nil || string(o.content) != tc.want || !strings.Contains(o.note, tc.how) || o.replacements != 1 {
				t.Errorf("edited = %q, %q, %v\nwant     %q", o.content, o.note, err, tc.want)
			}
		})
	}
}

func TestEditRefusesToGuess(t *testing.T) {
	for _, tc := range []struct {
		name, text, old, new, say string
	}{
		{"two places but for trailing space", "a \nx\na\t\n", "a\n", "b\n", "2 places (lines 1, 3)"},
		{"two blocks but for trailing space", "a \nb\nx\na\t\nb\n", "a\nb\n", "b\n", "2 places (lines 1, 4)"},
		{"two places but for indentation", "\ta()\n\t\ta()\n", "    a()\n", "b()\n", "2 places (lines 1, 2)"},
		{"uneven shift", "\ta()\n\t\t\tb()\n", "a()\nb()\n", "c()\n", "not in the file"},
		{"indentation of new is not known", "\ta()\n\t\tb()\n", "  a()\n    b()\n", "   c()\n", "not in the file"},
		{"part of a line", "x := a( )\n", "a()", "b()", "not in the file"},
		{"only white space", "a\n \nb\n", "\t\n\t\n", "x", "not in the file"},
		{"replace all is exact", "a \nb\n", "a\nb\n", "x", "not in the file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := strings.HasPrefix(tc.name, "replace all")
			o, err := edited(editArgs{Path: "f", Old: tc.old, New: tc.new, ReplaceAll: all}, []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.say) {
				t.Errorf("edited = %q, %q, %v", o.content, o.note, err)
			}
		})
	}
}

// Whatever is matched loosely, lines outside the place stay as they are.
func FuzzEditLoosely(f *testing.F) {
	f.Add("a \n\tb\nc\r\n", "b", "x\ny")
	f.Add("\tif x {\n\t\ty()\n\t}\n", "if x {\n\ty()\n}", "z")
	f.Add("a\r\nb", "a \nb ", "q\n")
	f.Fuzz(func(t *testing.T, text, old, new string) {
		got, how, err := substituteLoosely(text, old, new)
		if err != nil || how == "" {
			return
		}
		lines, n := strings.SplitAfter(text, "\n"), len(strings.Split(strings.TrimSuffix(plainEnds(old), "\n"), "\n"))
		for at := range len(lines) - n + 1 {
			head, tail := strings.Join(lines[:at], ""), strings.Join(lines[at+n:], "")
			if strings.HasPrefix(got, head) && strings.HasSuffix(got, tail) {
				return
			}
		}
		t.Fatalf("substituteLoosely(%q, %q, %q) = %q touched other lines", text, old, new, got)
	})
}
