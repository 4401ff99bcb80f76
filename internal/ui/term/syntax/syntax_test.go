package syntax_test

import (
	"strings"
	"testing"

	"coder/internal/ui/term/ink"
	"coder/internal/ui/term/syntax"
)

// spans writes the lines of text out with the role of each part, plain ones as
// they are.
func spans(lang, text string) string {
	names := map[ink.Role]string{ink.Keyword: "k", ink.String: "s", ink.Comment: "c", ink.Number: "n", ink.Name: "m"}
	var b strings.Builder
	scan := syntax.For(lang)
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		scan.DrawLine(line, func(l ink.Style, text string) {
			if n := names[l.Role]; n != "" {
				text = n + "«" + text + "»"
			}
			b.WriteString(text)
		})
	}
	return b.String()
}

func TestLanguages(t *testing.T) {
	for _, c := range []struct{ lang, in, want string }{
		{"go", `func f() string { return "a\"b" + 'x' } // c`, `k«func» f() string { k«return» s«"a\"b"» + s«'x'» } c«// c»`},
		{"go", "x := `a\nb` + 0x1F", "x := s«`a»\ns«b`» + n«0x1F»"},
		{"Go title=x", "/* a\nb */ if", "c«/* a»\nc«b */» k«if»"},
		{"py", "def f():  # no\n  '''doc\n  more''' + None", "k«def» f():  c«# no»\n  s«'''doc»\ns«  more'''» + n«None»"},
		{"ts", "const x: T = `a ${b}`; // c", "k«const» x: T = s«`a ${b}`»; c«// c»"},
		{"java", `public int x = 'c';`, `k«public» k«int» x = s«'c'»;`},
		{"c++", `#include <a> // x`, `#include <a> c«// x»`},
		{"rust", `fn f<'a>(x: &'a str) -> char { 'x' }`, `k«fn» f<'a>(x: &'a str) -> char { s«'x'» }`},
		{"sh", `if [ "$a" = 'b' ]; then echo x#y; fi # end`, `k«if» [ s«"$a"» = s«'b'» ]; k«then» echo x#y; k«fi» c«# end»`},
		{"bash", "git-lfs x --for-all", "git-lfs x --for-all"},
		{"json", `{"a": [1, true, null]}`, `{s«"a"»: [n«1», n«true», n«null»]}`},
		{"yaml", "key: \"v\" # c\nother-key: yes", "m«key»: s«\"v\"» c«# c»\nm«other-key»: n«yes»"},
		{"toml", "[a]\nb = '''x\ny'''", "[a]\nm«b» = s«'''x»\ns«y'''»"},
		{"sql", "SELECT 'it''s' from T -- c", "k«SELECT» s«'it'»s«'s'» k«from» T c«-- c»"},
		{"rb", `def x; "a" end`, `k«def» x; s«"a"» k«end»`},
		{"php", `echo $this; // c`, `k«echo» n«$this»; c«// c»`},
		{"lua", "--[[ a\nb ]] local x -- c", "c«--[[ a»\nc«b ]]» k«local» x c«-- c»"},
		{"html", `<a href="x"><!-- c`, `<a m«href»=s«"x"»>c«<!-- c»`},
		{"css", "a { color: red; } /* c */", "a { m«color»: red; } c«/* c */»"},
		{"", "func x", "func x"},
		{"brainfuck", "func x", "func x"},
		{"go", "世界 := \"世\"", "世界 := s«\"世\"»"},
		{"go", `"open`, `s«"open»`},
		{"go", "\"open\nx", "s«\"open»\nx"},
		{"go", strings.Repeat("x", 5000) + " func", strings.Repeat("x", 5000) + " func"},
	} {
		if got := spans(c.lang, c.in); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.lang, got, c.want)
		}
	}
}

func TestKnown(t *testing.T) {
	for lang, want := range map[string]bool{"go": true, ".py": true, "TSX": true, "js {1,3}": true, "": false, "text": false} {
		scan := syntax.For(lang)
		if scan.HasLanguage() != want {
			t.Errorf("%q known: %v", lang, scan.HasLanguage())
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, lang := range []string{"go", "py", "sh", "sql", "rust", "lua", "html", "yaml", "x"} {
		f.Add(lang, "if x == \"a\" { /* b\n*/ 'c' # d -- e ''' f` }")
	}
	f.Fuzz(func(t *testing.T, lang, text string) {
		scan := syntax.For(lang)
		for _, line := range strings.Split(text, "\n") {
			var b strings.Builder
			scan.DrawLine(line, func(_ ink.Style, part string) {
				if part == "" {
					t.Error("an empty part")
				}
				b.WriteString(part)
			})
			if b.String() != line {
				t.Fatalf("%s: %q became %q", lang, line, b.String())
			}
		}
	})
}
