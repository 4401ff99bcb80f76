package markdown_test

import (
	"strings"
	"testing"

	"coder/internal/ui/term/ink"
	"coder/internal/ui/term/markdown"
)

// looks writes spans out: <b>bold</b> and so on, equal neighbours joined.
type looks struct {
	b    strings.Builder
	last ink.Style
	held string
}

func (w *looks) put(l ink.Style, text string) {
	if l != w.last {
		w.flush()
		w.last = l
	}
	w.held += text
}

func (w *looks) flush() {
	if w.held == "" {
		return
	}
	if n := name(w.last); n != "" {
		w.held = "<" + n + ">" + w.held + "</" + n + ">"
	}
	w.b.WriteString(w.held)
	w.held = ""
}

func (w *looks) String() string { w.flush(); return w.b.String() }

func name(l ink.Style) string {
	n := [...]string{"", "dim", "tool", "good", "bad", "warn", "done", "code", "url", "kw", "str", "com", "num", "name"}[l.Role]
	for _, a := range []struct {
		set  bool
		name string
	}{{l.Bold, "b"}, {l.Italic, "i"}, {l.Underline, "u"}, {l.Strike, "s"}} {
		if a.set {
			n += a.name
		}
	}
	return n
}

func render(s markdown.Stream, pieces ...string) string {
	var w looks
	s.Put = w.put
	for _, p := range pieces {
		s.Write(p)
	}
	s.End()
	return w.String()
}

func wide() int { return 40 }

var cases = []struct{ name, in, want string }{
	{"plain", "Hello, 世界.", "Hello, 世界."},
	{"blank lines at the ends go", "\n\n a\n\n\n\nb\n\n", " a\n\nb"},
	{"bold", "a **b c** d", "a <b>b c</b> d"},
	{"italic", "a *b* d", "a <i>b</i> d"},
	{"both", "***b***", "<bi>b</bi>"},
	{"struck", "~~b~~ ~/x/~", "<s>b</s> ~/x/~"},
	{"bold in CJK", "这是**重点**内容", "这是<b>重点</b>内容"},
	{"code in bold", "**a `x**y` b**", "<b>a </b><codeb>x**y</codeb><b> b</b>"},
	{"italic in bold", "**a *b* c**", "<b>a </b><bi>b</bi><b> c</b>"},
	{"emphasis by underscores", "an _open_ question, __very much__ so", "an <i>open</i> question, <b>very much</b> so"},
	{"underscores in names", "_x_y, _f_(a), a_b_c and _lone", "_x_y, _f_(a), a_b_c and _lone"},
	{"underscores stay", "__init__ and snake_case_name", "__init__ and snake_case_name"},
	{"stars that are none", "2 * 3 * 4, a*b*c, (*T).M and (*U).N, *.go *.md", "2 * 3 * 4, a*b*c, (*T).M and (*U).N,\n*.go *.md"},
	{"a star within a word", "a 2*3* 4", "a 2*3* 4"},
	{"open to the end", "a **b", "a **b"},
	{"open at the line end", "a **b\nc** d", "a **b\nc** d"},
	{"code", "run `go test` now", "run <code>go test</code> now"},
	{"code with ticks", "`` a`b ``", "<code>a`b</code>"},
	{"open code", "a `b\nc", "a `b\nc"},
	{"escape", `\*a\* \d \`, `*a* \d \`},
	{"link", "see [the **docs**](https://x.y/a_(b)) now", "see <u>the </u><bu>docs</bu> (<url>https://x.y/a_(b)</url>) now"},
	{"link with a title", "[a](https://x.y \"the title\") [b](<https://x.z>)", "<u>a</u> (<url>https://x.y</url>) <u>b</u> (<url>https://x.z</url>)"},
	{"picture that leads somewhere", "[![ci](https://x.y/i.svg)](https://x.y)", "<u>ci</u> (<url>https://x.y</url>)"},
	{"link to itself", "[https://x.y](https://x.y)", "<u>https://x.y</u>"},
	{"no link", "[ ] a [1] b[0](x) [a](", "[ ] a [1] b[0](x) [a]("},
	{"heading", "## A `b` c\ntext", "<b>## A </b><codeb>b</codeb><b> c</b>\ntext"},
	{"no heading", "#x\n####### y\n#", "#x\n####### y\n#"},
	{"list", "- a\n* **b**\n  + c\n1. d\n- [ ] e", "- a\n* <b>b</b>\n  + c\n1. d\n- [ ] e"},
	{"list by tabs", "- a\n\t- one two three four five six seven eight", "- a\n    - one two three four five six seven\n      eight"},
	{"rule", "a\n\n---\n* * *\nb", "a\n\n<dim>---</dim>\n<dim>* * *</dim>\nb"},
	{"quote", "> a *b*\n> > c", "<dim>> </dim>a <i>b</i>\n<dim>> > </dim>c"},
	{"fence", "x\n```go\nfunc f() {\n\n}\n```\ny", "x\n\n<kw>func</kw> f() {\n\n}\n\ny"},
	{"fence in a quote", "> ```go\n> func f() *T\n>\n> ```\n> *b*\n> ~~~\n> *c*\nd *e*", "<dim>> ```go</dim>\n<dim>> </dim><kw>func</kw> f() *T\n<dim>></dim>\n<dim>> ```</dim>\n<dim>> </dim><i>b</i>\n<dim>> ~~~</dim>\n<dim>> </dim>*c*\nd <i>e</i>"},
	{"open fence", "```\n**a**\n", "<dim>```</dim>\n**a**"},
	{"fence in a fence", "````\n```\n````", "<dim>````</dim>\n```\n<dim>````</dim>"},
	{"diff", "```diff\n--- a\n+b\n-c\n```", "<dim>--- a</dim>\n<good>+b</good>\n<bad>-c</bad>"},
	{"ticks that are no fence", "```x``` y", "<code>x</code> y"},
	{"table", "a\n| A | B |\n|:--|--:|\n| `x` | 1 |\n| 世界 | 22 |\nb", "a\n<b>A</b>      <b>B</b>\n<dim>────  ──</dim>\n<code>x</code>      1\n世界  22\nb"},
	{"table with bars", "| A |\n|-|\n| a\\|b `|` |\n\nx", "<b>A</b>\n<dim>─────</dim>\na|b <code>|</code>\n\nx"},
	{"table in a quote", "> a\n> | A |\n> |-|\n> | x |\n> b", "<dim>> </dim>a\n<dim>> </dim><b>A</b>\n<dim>> ─</dim>\n<dim>> </dim>x\n<dim>> </dim>b"},
	{"table in a list", "- a\n\n  | A |\n  |-|\n  | x |\n | y |\n- b", "- a\n\n<dim>  </dim><b>A</b>\n<dim>  ─</dim>\n<dim>  </dim>x\n<dim>  </dim>y\n- b"},
	{"table beside a quote", "| A |\n|-|\n| x |\n> | B |\n> |-|\n", "<b>A</b>\n<dim>─</dim>\nx\n<dim>> </dim><b>B</b>\n<dim>> ─</dim>"},
	{"no table in a quote", "> | a\n> b", "<dim>> </dim>| a\n<dim>> </dim>b"},
	{"table with line ends", "| A |\n|-|\n| x<br>y |", "<b>A</b>\n<dim>─────</dim>\nx / y"},
	{"no table", "| A | *B*\n| c\nd", "| A | <i>B</i>\n| c\nd"},
	{"table with a wide column", "| Name | What |\n|-|-|\n| one | many **words that** do not fit here at all |\n| two | " + strings.Repeat("x", 30) + " |",
		"<b>Name</b>  <b>What</b>\n<dim>────  ──────────────────────────────────</dim>\none   many <b>words that</b> do not fit here at\n      all\ntwo   " + strings.Repeat("x", 30)},
	{"table too wide", "| Name | What it does | Why |\n|-|-|-|\n| " + strings.Repeat("o", 13) + " | " + strings.Repeat("x", 14) + " | " + strings.Repeat("z", 14) + " |",
		"<b>Name</b>: ooooooooooooo\n<b>What it does</b>: xxxxxxxxxxxxxx\n<b>Why</b>: zzzzzzzzzzzzzz"},
	{"words are kept whole", "one two three four five six seven eight nine ten", "one two three four five six seven eight\nnine ten"},
	{"an item goes on below its words", "1. one two three four five six seven eight nine\n   - aa bb cc dd ee ff gg hh ii jj kk ll mm nn oo", "1. one two three four five six seven\n   eight nine\n   - aa bb cc dd ee ff gg hh ii jj kk ll\n     mm nn oo"},
	{"so does one with another sign", "• one two three four five six seven eight nine\n1、这是一个很长的条目，其中没有任何空格，可以在任何字之间换行\n（12）这是一个很长的条目，其中没有任何空格，可以换行\n十一、这是一个很长的条目，其中没有任何空格，可以换行",
		"• one two three four five six seven\n  eight nine\n1、这是一个很长的条目，其中没有任何空\n   格，可以在任何字之间换行\n（12）这是一个很长的条目，其中没有任何空\n      格，可以换行\n十一、这是一个很长的条目，其中没有任何空\n      格，可以换行"},
	{"signs that begin no item", "•x\n一个\n（一个）\n（12 x）\n12，x\n（", "•x\n一个\n（一个）\n（12 x）\n12，x\n（"},
	{"a quote goes on below its words", "> one two three four five six seven *eight nine* ten", "<dim>> </dim>one two three four five six seven\n  <i>eight nine</i> ten"},
	{"an item in a quote goes on below its words", "> - one two three four five six seven eight\n> 12. one two three four five six seven eight\n> > * one two three four five six seven eight",
		"<dim>> - </dim>one two three four five six seven\n    eight\n<dim>> 12. </dim>one two three four five six seven\n      eight\n<dim>> > * </dim>one two three four five six seven\n      eight"},
	{"no item in a quote", "> **b** -x\n> -\n> 12345. x\n> 7 x", "<dim>> </dim><b>b</b> -x\n<dim>> </dim>-\n<dim>> </dim>12345. x\n<dim>> </dim>7 x"},
	{"characters by their names", "a &lt;b&gt; &amp;&#35;&#x4e2d; &copy;&nbsp;**&quot;x&quot;**", "a <b> &#中 © <b>\"x\"</b>"},
	{"no character by its name", "a && b &x; &lt &;\n`&lt;` &#27;&#x202e;&#0;&#10;\n```\n&lt;\n```\n&", "a && b &x; &lt &;\n<code>&lt;</code> &#27;&#x202e;&#0;&#10;\n<dim>```</dim>\n&lt;\n<dim>```</dim>\n&"},
	{"a word that fits nowhere stays whole", "see https://example.com/a/very/long/address/that/does/not/fit ok", "see https://example.com/a/very/long/address/that/does/not/fit ok"},
	{"words without blanks", "这是一个很长的中文段落，其中没有任何空格，所以可以在任何字之间换行。", "这是一个很长的中文段落，其中没有任何空\n格，所以可以在任何字之间换行。"},
	{"code is left alone", "```\nx := \"a line of code that is longer than the terminal is wide\"\n```", "<dim>```</dim>\nx := \"a line of code that is longer than the terminal is wide\"\n<dim>```</dim>"},
	{"code that is set in", "run\n\n    curl --data *a* b* http://example.com/v1/things/of/many\n    # **c**\n\n      - d\n\ndone *now*",
		"run\n\n    curl --data *a* b* http://example.com/v1/things/of/many\n    # **c**\n\n      - d\n\ndone <i>now</i>"},
	{"code that is set in below an item", "1. a\n\n       x *y* z\n\n    *b*\n\nc\n\n    x *d*", "1. a\n\n       x *y* z\n\n    <i>b</i>\n\nc\n\n    x *d*"},
	{"what is set in and no code", "a\n    *b*\n\n    - *c*\n\n        *d*", "a\n    <i>b</i>\n\n    - <i>c</i>\n\n        <i>d</i>"},
	{"ragged table", "| A | B |\n|-|-|\n| 1 |\n| 1 | 2 | 3 |", "<b>A</b>  <b>B</b>\n<dim>─  ─  ─</dim>\n1\n1  2  3"},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		if got := render(markdown.Stream{Width: wide}, c.in); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// However the text is cut, what is put is the same; and so is what was put
// before the next rune came.
func TestAnyCut(t *testing.T) {
	for _, c := range cases {
		runes := strings.Split(c.in, "")
		if got := render(markdown.Stream{Width: wide}, runes...); got != c.want {
			t.Errorf("%s, rune by rune:\n got %q\nwant %q", c.name, got, c.want)
		}
		for i := range runes {
			a, b := strings.Join(runes[:i], ""), strings.Join(runes[i:], "")
			if got := render(markdown.Stream{Width: wide}, a, b); got != c.want {
				t.Errorf("%s, cut at %d:\n got %q\nwant %q", c.name, i, got, c.want)
			}
		}
	}
}

// Without looks every mark stays, so nothing that was said is lost.
func TestSource(t *testing.T) {
	const text = "# T\n**a** `b` [c](d) \\*\n> q\n```go\nfunc\n```\n- x"
	if got := visible(markdown.Stream{KeepMarks: true}, text); got != text {
		t.Errorf("got %q", got)
	}
}

func visible(s markdown.Stream, pieces ...string) string {
	var b strings.Builder
	s.Put = func(_ ink.Style, text string) { b.WriteString(text) }
	for _, p := range pieces {
		s.Write(p)
	}
	s.End()
	return b.String()
}

// Text is put as it arrives, and what is held back has a limit.
func TestNothingIsHeldForLong(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a word", "hel", "hel"},
		{"an open star", "a *b", "a "},
		{"a star that cannot open", "a * b", "a * b"},
		{"a closed span", "a *b* c", "a b c"},
		{"a long span", "a *" + strings.Repeat("b", 2000), "a *" + strings.Repeat("b", 2000)},
		{"a long line of code", "```\n" + strings.Repeat("x", 5000), "```\n" + strings.Repeat("x", 5000)},
		{"a long row", "|" + strings.Repeat("x", 9000), "|" + strings.Repeat("x", 9000)},
		{"a long start", strings.Repeat("-", 300), strings.Repeat("-", 300)},
		{"a long fence", "```" + strings.Repeat("x", 2000), "```" + strings.Repeat("x", 2000)},
	} {
		var b strings.Builder
		s := markdown.Stream{Put: func(_ ink.Style, text string) { b.WriteString(text) }}
		s.Write(c.in)
		if b.String() != c.want {
			t.Errorf("%s: %.80q so far, want %.80q", c.name, b.String(), c.want)
		}
	}
}

func TestLongTable(t *testing.T) {
	text := "| n | m |\n|-|-|\n" + strings.Repeat("| a | b |\n", 500) + "end"
	got := render(markdown.Stream{Width: wide}, text)
	if strings.Count(got, "\na  b") != 500 || !strings.HasSuffix(got, "\nend") {
		t.Errorf("%d rows, ends %q", strings.Count(got, "\na  b"), got[len(got)-20:])
	}
	if again := render(markdown.Stream{Width: wide}, strings.SplitAfter(text, "|")...); again != got {
		t.Error("drawn otherwise when it comes in pieces")
	}
}

// At the very edge of what may be held back, too, only the text decides.
func TestEdgeOfWhatIsHeld(t *testing.T) {
	for n := 500; n < 520; n++ {
		for _, form := range []string{"*X* a", "*X*a", "**X** a", "`X` a", "``X`` a", "~~X~~a", "[X](u) a", "[a](X) a", "**`X`** a"} {
			text := strings.Replace(form, "X", strings.Repeat("x", n), 1)
			want := render(markdown.Stream{}, text)
			for cut := n; cut < len(text); cut++ {
				if got := render(markdown.Stream{}, text[:cut], text[cut:]); got != want {
					t.Errorf("%s with %d, cut at %d:\n got %q\nwant %q", form, n, cut, got, want)
				}
			}
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, c := range cases {
		f.Add(c.in, 3, false)
	}
	f.Add(strings.Repeat("*a", 900), 7, true)
	f.Fuzz(func(t *testing.T, text string, step int, source bool) {
		text = strings.ToValidUTF8(text, "?")
		s := markdown.Stream{Width: wide, KeepMarks: source}
		want := render(s, text)
		runes := strings.Split(text, "")
		step = max(1, step%50)
		var pieces []string
		for i := 0; i < len(runes); i += step {
			pieces = append(pieces, strings.Join(runes[i:min(i+step, len(runes))], ""))
		}
		if got := render(s, pieces...); got != want {
			t.Fatalf("%q in pieces of %d:\n got %q\nwant %q", text, step, got, want)
		}
		if source && !strings.Contains(text, "|") {
			expectAllThere(t, text, visible(s, text))
		}
	})
}

// expectAllThere checks that only white space was lost.
func expectAllThere(t *testing.T, text, got string) {
	t.Helper()
	if a, b := strings.Join(strings.Fields(text), ""), strings.Join(strings.Fields(got), ""); a != b {
		t.Fatalf("%q became %q", text, got)
	}
}

func BenchmarkStream(b *testing.B) {
	for name, piece := range map[string]string{"prose": "word, **bold** and ", "code": "x := 1\n", "stars": "*a "} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := markdown.Stream{Put: func(ink.Style, string) {}}
				if name == "code" {
					s.Write("```go\n")
				}
				for range 20000 {
					s.Write(piece)
				}
				s.End()
			}
		})
	}
}
