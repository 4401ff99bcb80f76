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
		{"white space at line ends", "a  \nb\t\nc\n", "a\nb\n", "x\n", "x\nc\n", trailingDiffers},
		{"white space at the ends of old", "a\nb\nc\n", "a \nb \n", "x\n", "x\nc\n", trailingDiffers},
		{"last line without end", "a\nb \nc\n", "a \nb", "x", "x\nc\n", trailingDiffers},
		{"windows file", "a \r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n", trailingDiffers},
		{"old has windows line ends", "a\nb\nc\n", "a\r\nb\r\n", "x\r\n", "x\nc\n", "end with \\n"},
		{"indented less than the file", "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n", "if x {\n\ty()\n}\n", "if z {\n\t\ty()\n}\n", "func f() {\n\tif z {\n\t\t\ty()\n\t}\n}\n", indentDiffers},
		{"indented more than the file", "if x {\n\ty()\n}\n", "\tif x {\n\t\ty()\n\t}\n", "\tif z {\n\t\ty()\n\t\tw()\n\t}\n", "if z {\n\ty()\n\tw()\n}\n", indentDiffers},
		{"spaces for tabs", "f() {\n\tg()\n\t\th()\n}\n", "    g()\n        h()\n", "    k()\n        h()\n", "f() {\n\tk()\n\t\th()\n}\n", indentDiffers},
		{"new indented like the file already", "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n", "if x {\n\ty()\n}\n", "\tif z {\n\t\ty()\n\t}\n", "func f() {\n\tif z {\n\t\ty()\n\t}\n}\n", oldIndentDiffers},
		{"one line in a body, indented already", "{\n\ta()\n}\n", "  a()\n", "\tb()\n\tc()\n", "{\n\tb()\n\tc()\n}\n", oldIndentDiffers},
		{"wrapped, so indented more", "\ta()\n", "a() \n", "if x {\n\ta()\n}\n", "\tif x {\n\t\ta()\n\t}\n", indentDiffers},
		{"curly quotes", "say “hello” to\nthe ‘world’\n", "say \"hello\" to\nthe 'world'\n", "say \"hello\" to\nthe 'moon'\n", "say “hello” to\nthe ‘moon’\n", typographyDiffers},
		{"a dash within a line", "from 1–2 and on\n", "1-2 and", "1-2 or", "from 1–2 or on\n", typographyDiffers},
		{"spaces that do not break", "a\u00a0=\u202f1\n", "a = 1", "a = 2", "a\u00a0=\u202f2\n", typographyDiffers},
		{"curly quotes of the model's", "x = \"a\"\n", "x = “a”", "x = “b”", "x = \"b\"\n", typographyDiffers},
		{"curly in a windows file", "“a”\r\nb\r\n", "\"a\"\nb\n", "\"a\"\nc\nd\n", "“a”\r\nc\r\nd\r\n", typographyDiffers},
		{"wide characters before it", "“你好” — 再见 'x'\n", "- 再见 'x'", "- 再见 'y'", "“你好” — 再见 'y'\n", typographyDiffers},
		{"blank lines stay blank", "\ta()\n\n\tb()\n", "a()\n\nb()\n", "a()\n\nc()\n", "\ta()\n\n\tc()\n", indentDiffers},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, err := applyEdits(editArgs{Path: "f", Old: tc.old, New: tc.new}, []byte(tc.text))
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
		{"curly quotes in two places", "‘a’\nx\n“a” ’a‘\n", "'a'", "b", "2 places (lines 1, 3)"},
		{"curly but otherwise different", "“hello world”\n", "\"hello there\"", "x", "the file has '“' (U+201C) where '\"' (U+0022) was given"},
		{"differing in line ends only", "a\r\nb\r\n", "a\r\nb", "a\nb", "only in line endings"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, err := applyEdits(editArgs{Path: "f", Old: tc.old, New: tc.new}, []byte(tc.text))
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
		l, err := substituteLoosely(text, old, new, false)
		if err != nil || l.count == 0 {
			return
		}
		got := l.text
		lines, n := strings.SplitAfter(text, "\n"), len(strings.Split(strings.TrimSuffix(old, "\n"), "\n"))
		for at := range len(lines) - n + 1 {
			head, tail := strings.Join(lines[:at], ""), strings.Join(lines[at+n:], "")
			if strings.HasPrefix(got, head) && strings.HasSuffix(got, tail) {
				return
			}
		}
		t.Fatalf("substituteLoosely(%q, %q, %q) = %q touched other lines", text, old, new, got)
	})
}

func TestReplaceAllMatchesLooselyToo(t *testing.T) {
	for _, tc := range []struct{ name, text, old, new, want string }{
		{"indentation", "if x {\n\ta()\n}\nif y {\n\t\ta()\n}\n", "  a()\n", "  b()\n  c()\n", "if x {\n\tb()\n\tc()\n}\nif y {\n\t\tb()\n\t\tc()\n}\n"},
		{"white space at line ends", "a \nx\na\t\nx\n", "a\nx\n", "b\n", "b\nb\n"},
		{"quotes", "‘a’ “a” 'a'\n", "'a'", "'b'", "‘a’ “a” 'b'\n"}, // what stands there as given is what is meant
		{"quotes everywhere", "‘a’\n’a’\n", "'a'", "'bc'", "‘bc’\n’bc’\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, err := applyEdits(editArgs{Path: "f", Old: tc.old, New: tc.new, ReplaceAll: true}, []byte(tc.text))
			if err != nil || string(o.content) != tc.want {
				t.Errorf("edited = %q, %q, %v\nwant     %q", o.content, o.note, err, tc.want)
			}
		})
	}
}

// Whatever line ends a model writes, those of the file are kept.
func TestEditKeepsTheLineEndsOfTheFile(t *testing.T) {
	const plain = "one\ntwo\nthree\nfour\n"
	for _, file := range []string{"\n", "\r\n", "\r"} {
		for _, inOld := range []string{"\n", "\r\n"} {
			for _, inNew := range []string{"\n", "\r\n"} {
				for _, edit := range [][2]string{{"two\nthree\n", "2\n3\nand more\n"}, {"one\n", "0\n1\n"}, {"four\n", "4\n5"}, {"two", "2\n2\n"}, {"three\nfour", "\n"}, {" two\nthree", "2\n"}} {
					written := func(s, ends string) string { return strings.ReplaceAll(s, "\n", ends) }
					o, err := applyEdits(editArgs{Path: "f", Old: written(edit[0], inOld), New: written(edit[1], inNew)}, []byte(written(plain, file)))
					if err != nil {
						t.Errorf("%q %q %q %q: %v", file, inOld, inNew, edit[0], err)
						continue
					}
					want, err := applyEdits(editArgs{Path: "f", Old: edit[0], New: edit[1]}, []byte(plain))
					if err != nil || string(o.content) != written(string(want.content), file) {
						t.Errorf("%q %q %q %q: got %q", file, inOld, inNew, edit[0], o.content)
					}
				}
			}
		}
	}
}

func TestWriteKeepsTheLineEndsOfTheFile(t *testing.T) {
	for _, tc := range []struct{ old, content, want string }{
		{"a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n"},
		{"a\r\nb\r\n", "x\r\ny\n", "x\r\ny\r\n"},
		{"a\nb\n", "x\r\ny\r\n", "x\ny\n"},
		{"a\rb\r", "x\ny\n", "x\ry\r"},
		{"a\r\nb\n", "x\r\ny\n", "x\r\ny\n"}, // both kinds: as given
		{"a", "x\r\ny", "x\r\ny"},            // none to keep
		{"", "x\r\ny\r\n", "x\r\ny\r\n"},
	} {
		if got, err := rewrite("f", []byte(tc.old), tc.content); err != nil || string(got) != tc.want {
			t.Errorf("%q over %q is %q, want %q (%v)", tc.content, tc.old, got, tc.want, err)
		}
	}
}
