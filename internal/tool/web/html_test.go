package web

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

var base = &url.URL{Scheme: "https", Host: "example.org", Path: "/docs/page"}

func TestReadable(t *testing.T) {
	for _, tc := range []struct{ name, html, markdown, text string }{
		{"paragraphs", "<p>one\n two<p>three</p>four", "one two\n\nthree\n\nfour", ""},
		{"divisions", "<div>one<div>two</div></div>three", "one\ntwo\nthree", ""},
		{"headings", "<h1>A</h1>x<h3>B <em>c</em></h3>y", "# A\n\nx\n\n### B c\n\ny", "A\n\nx\n\nB c\n\ny"},
		{"an empty heading", "<h2></h2>x", "x", ""},
		{"white space", "a  b\t\n c&nbsp;d<b> e </b>f\u00adg\u200bh", "a b c d e fgh", ""},
		{"words stay apart", "<b>a</b> <i>b</i><i>c</i>", "a bc", ""},
		{"line breaks", "a<br>b<br/>\n c", "a\nb\nc", ""},
		{"rules", "a<hr>b", "a\n\n---\n\nb", ""},
		{"entities", "&lt;p&gt; &amp;amp; &copy; &#x4e16;&#30028; &nosuch;", "<p> &amp; © 世界 &nosuch;", ""},
		{"list", "a<ul><li>one<li>two</ul>b", "a\n\n- one\n- two\n\nb", ""},
		{"numbers", `<ol start="3"><li>x</li><li>y</li></ol>`, "3. x\n4. y", ""},
		{"lists within lists", "<ul><li>a<ul><li>b<ol><li>c</ol></ul><li>d</ul>", "- a\n  - b\n    1. c\n- d", ""},
		{"items of paragraphs", "<ul><li><p>a</p><p>b</p></li><li><p>c</p></li></ul>", "- a\n\n  b\n- c", ""},
		{"an empty item", "<ul><li></li><li>a</ul><p>b", "- a\n\nb", ""},
		{"an item alone", "<li>a", "- a", ""},
		{"links", `see <a href="../x?a=1&amp;b=2">the  page</a>.`, "see [the page](https://example.org/x?a=1&b=2).", "see the page."},
		{"links with brackets", `<a href="/a_(b) c">x</a>`, "[x](https://example.org/a_%28b%29%20c)", "x"},
		{"links that lead nowhere", `<a href="javascript:alert(1)">a</a> <a href="data:,x">b</a> <a>c</a> <a href="">d</a>`, "a b c d", ""},
		{"links within the page", `<h2>Title <a href="#t">¶</a></h2><a href="#x">there</a>`, "## Title\n\nthere", "Title\n\nthere"},
		{"links to their own name", `<a href="https://example.org/">https://example.org/</a>`, "https://example.org/", ""},
		{"links without text", `<a href="/x"><svg><path/></svg></a>a`, "a", ""},
		{"links around blocks", `<a href="/x"><h3>A</h3><p>b</p></a>`, "### [A](https://example.org/x)\n\nb", "A\n\nb"},
		{"links never ended", `<a href="/x">a <a href="/y">b`, "[a](https://example.org/x) [b](https://example.org/y)", "a b"},
		{"mail", `<a href="mailto:a@b.c">m</a>`, "[m](mailto:a@b.c)", "m"},
		{"another base", `<base href="//cdn.example/"><a href="x">x</a>`, "[x](https://cdn.example/x)", "x"},
		{"code", "use <code>a  &lt; b</code> or <kbd>`</kbd><code></code>", "use `a < b` or `````", "use a < b or `"},
		{"code in links", `<a href="/x"><code>f</code></a><code><a href="/y">g</a></code>`, "[`f`](https://example.org/x)`g`", "fg"},
		{"preformatted", "<pre><code class=\"hl language-go\">\nfunc <b>f</b>() {\n\treturn\n}\n</code></pre>x", "```go\nfunc f() {\n\treturn\n}\n```\n\nx", "func f() {\n\treturn\n}\n\nx"},
		{"preformatted lines", "<pre><div>a</div><div>b</div>c<br>d</pre>", "```\na\nb\nc\nd\n```", "a\nb\nc\nd"},
		{"fences", "<pre>a\n```\nb</pre>", "````\na\n```\nb\n````", "a\n```\nb"},
		{"line numbers", "<table><tr><td><pre>1\n2\n</pre></td><td><pre>a\nb</pre></td></tr></table>c", "```\na\nb\n```\n\nc", "a\nb\n\nc"},
		{"preformatted in a list", "<ul><li>a<pre>b\nc</pre></ul>", "- a\n\n  ```\n  b\n  c\n  ```", "- a\n\n  b\n  c"},
		{"quotes", "<blockquote>a<p>b</blockquote>c", "> a\n\n> b\n\nc", "a\n\nb\n\nc"},
		{"table", "<table><tr><th>A<th>B</tr><tr><td>1<td>x|<br>y</table>c", "| A | B |\n| --- | --- |\n| 1 | x\\| y |\n\nc", "A | B\n1 | x| y\n\nc"},
		{"table with parts", "<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td><p>1</p></td><td><a href='/x'>y</a></td></tr></tbody></table>", "| A | B |\n| --- | --- |\n| 1 | [y](https://example.org/x) |", "A | B\n1 | y"},
		{"table with an empty cell", "<table><tr><td></td><td>b</td></tr></table>", "|  | b |\n| --- | --- |", " | b"},
		{"table for layout", "<table><tr><td><h2>A</h2><p>b</p></td><td><ul><li>c</ul></td></tr></table>d", "## A\n\nb\n\n- c\n\nd", "A\n\nb\n\n- c\n\nd"},
		{"tables within tables", "<table><tr><td>x</td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>", "x\n\n| a | b |\n| --- | --- |", "x\n\na | b"},
		{"images", `<img src="/i.png" alt="a  cat"> <img src="x"> <a href="/y"><img src="z" alt="dog"></a>`, "![a cat](https://example.org/i.png) [dog](https://example.org/y)", "a cat dog"},
		{"what is not text", "a<script>if (a</b>c) x('</scr')</script>b<style>p{}</style><!-- <p>no --><nav>no<nav>no</nav>no</nav><svg><title>no</title></svg><template>no</template>c", "ab\nc", ""},
		{"what is not to be seen", `a<p hidden>no</p><div style="display : NONE">no<div>no</div></div><i aria-hidden="true">no</i><img hidden alt=no>b`, "a\n\nb", ""},
		{"navigation by role", `a<div role="navigation">no</div>b`, "a\nb", ""},
		{"navigation that never ends", "<nav>a<p>b", "a\n\nb", ""},
		{"nothing but navigation", "<nav>a</nav>", "a", ""},
		{"comments that are odd", "a<!-->b<!--->c<!--d-->e<!doctype html>f<?php g?>h<!-- never ended", "abcefh", ""},
		{"tags that are none", "a < b << c <3 <>", "a < b << c <3 <>", ""},
		{"a comment that begins as a tag ends", "a </ d > b", "a b", ""},
		{"tags never ended", "a<p title='x", "a", ""},
		{"attributes that are odd", `<a class=x"y href = '/x' / b=c =d>e</a>`, "[e](https://example.org/x)", "e"},
		{"upper case", "<UL><LI>a</UL><SCRIPT>no</sCript >b", "- a\n\nb", ""},
		{"end tags that end nothing", "</p></ul></table></td></a></main></pre></blockquote>a", "a", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.text == "" {
				tc.text = tc.markdown
			}
			if got := convertPage(tc.html, base, true).text; got != tc.markdown {
				t.Errorf("markdown of %s\n got %q\nwant %q", tc.html, got, tc.markdown)
			}
			if got := convertPage(tc.html, base, false).text; got != tc.text {
				t.Errorf("text of %s\n got %q\nwant %q", tc.html, got, tc.text)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	d := convertPage("<head><title> A &amp;\n<b> </title></head><svg><title>no</title></svg>x<title>no</title>", base, true)
	if d.title != "A & <b>" || d.text != "x" {
		t.Errorf("%+v", d)
	}
}

func TestOnlyTheMainPart(t *testing.T) {
	long := strings.Repeat("word ", 50)
	for _, tc := range []struct{ html, want string }{
		{"head<main><p>" + long + "</main>foot", strings.TrimSpace(long)},
		{"head<main>" + long, strings.TrimSpace(long)},
		{"head<main>short</main>foot", "head\n\nshort\n\nfoot"},
		{"head<main>short</main><main>" + long + "</main>foot", strings.TrimSpace(long)},
		{"head<main>" + long + "<main>x</main></main>foot", long + "\n\nx"},
	} {
		if got := convertPage(tc.html, base, true).text; got != strings.ReplaceAll(tc.want, " \n", "\n") {
			t.Errorf("%.40s: %q", tc.html, got)
		}
	}
}

func TestReadableIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	far := &url.URL{Scheme: "https", Host: "example.org", Path: "/" + strings.Repeat("x", 900) + "/"}
	for name, piece := range map[string]string{
		"links":       "<a href=a>b</a> ",
		"images":      "<img src=a alt=b>",
		"cells":       "<td><a href=a>b</a>",
		"rows":        "<table><tr><td><a href=a>b</a><td>c",
		"lists":       "<ul><li>a",
		"quotes":      "<blockquote>a",
		"backticks":   "<pre>`",
		"open":        "<",
		"attributes":  "<a b=c ",
		"quoted":      `<a b="`,
		"comments":    "<!--",
		"hidden":      "<p hidden>a",
		"dropped":     "<nav><svg><button><video>",
		"entities":    "&#27;",
		"marks":       "\u202e",
		"code":        "<code>`",
		"scripts":     "<script></scrip",
		"divisions":   "<div>a",
		"main":        "<main>a",
		"definitions": "<?",
	} {
		t.Run(name, func(t *testing.T) {
			source := strings.Repeat(piece, (1<<19)/len(piece))
			d := convertPage(source, far, true)
			if len(d.text) > 4*maxReadable {
				t.Errorf("%d bytes of text", len(d.text))
			}
			check(t, d)
		})
	}
}

// check sees that a document can be shown.
func check(t *testing.T, d document) {
	t.Helper()
	for _, s := range []string{d.title, d.text} {
		if !utf8.ValidString(s) {
			t.Errorf("not UTF-8: %.200q", s)
		}
		if i := strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x202e }); i >= 0 {
			t.Errorf("control character at %d: %.20q", i, s[i:])
		}
	}
}

func FuzzReadable(f *testing.F) {
	for _, s := range []string{
		"<p>a<ul><li>b<table><tr><td>c<td>d</table>", "<a href=x><code>y</a>z</code>", "<pre><div>1</pre>", "<table><td><pre>x", "\x00\x1b[2J\xff&#27;",
		"<nav><p hidden><svg>", "<main><blockquote><h1>x</main>", "<a href='x'><table><tr><td>y</a></table>z", "<code><table></code><td>`</table>",
		"<title>x</title><!-- a --><script>b</script>", "<a href=/><tr><li><img alt=x src=y></a>", "<textarea></p></textarea>x<xmp><b></xmp>",
	} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, source string, markdown bool) {
		d := convertPage(source, base, markdown)
		check(t, d)
		if n := len(d.text); n > 100*len(source)+1000 {
			t.Errorf("%d bytes became %d", len(source), n)
		}
	})
}

func BenchmarkReadable(b *testing.B) {
	piece := `<div class="x"><h2>Title <a href="#t">#</a></h2><p>Some <a href="/a/b?c=d">words</a> &amp; <code>code</code>.</p><ul><li>one<li>two</ul></div>`
	source := strings.Repeat(piece, (1<<19)/len(piece))
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		convertPage(source, base, true)
	}
}
