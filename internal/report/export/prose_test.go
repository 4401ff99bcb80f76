package export

import (
	"bufio"
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/core/uip"
)

func rendered(text string) string {
	var b strings.Builder
	p := page{Writer: bufio.NewWriter(&b)}
	p.writeMarkdown(text)
	p.Flush()
	return b.String()
}

// TestMarkdownIsRendered, whatever people and models write.
func TestMarkdownIsRendered(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb\n\nc":                    "<p>a\nb</p>\n<p>c</p>\n",
		"# T *i*":                      "<h3>T <em>i</em></h3>\n",
		"- one\n- two":                 "<ul>\n<li><p>one</p>\n</li>\n<li><p>two</p>\n</li>\n</ul>\n",
		"3. c\n4. d":                   "<ol start=\"3\">\n<li><p>c</p>\n</li>\n<li><p>d</p>\n</li>\n</ol>\n",
		"- a\n  - b\n- c":              "<ul>\n<li><p>a</p>\n<ul>\n<li><p>b</p>\n</li>\n</ul>\n</li>\n<li><p>c</p>\n</li>\n</ul>\n",
		"1. a\n   ```go\n   x\n   ```": "<ol start=\"1\">\n<li><p>a</p>\n<pre><code>x</code></pre>\n</li>\n</ol>\n",
		"- [x] done\n- [ ] not":        "<ul>\n<li><p>☑ done</p>\n</li>\n<li><p>☐ not</p>\n</li>\n</ul>\n",
		"> said\n> more\n\nafter":      "<blockquote>\n<p>said\nmore</p>\n</blockquote>\n<p>after</p>\n",
		"---":                          "<hr>\n",
		"| 名 | n |\n|---|--:|\n| `a|b` | 1\\|2 |": "<div class=\"table\"><table>\n<thead>\n<tr><th>名</th><th class=\"right\">n</th></tr>\n</thead>\n<tbody>\n" +
			"<tr><td><code>a|b</code></td><td class=\"right\">1|2</td></tr>\n</tbody>\n</table></div>\n",
		"**b** _i_ ~~s~~ a_b_c 2*3*4x 好*的*":              "<p><strong>b</strong> <em>i</em> <del>s</del> a_b_c 2*3*4x 好<em>的</em></p>\n",
		"**a `**` b**":                                   "<p><strong>a <code>**</code> b</strong></p>\n",
		"[名](https://a.b/c?d=1&e=(2))":                   "<p><a href=\"https://a.b/c?d=1&amp;e=(2)\" rel=\"noopener noreferrer nofollow\">名</a></p>\n",
		"见 https://a.b/c。好":                              "<p>见 <a href=\"https://a.b/c\" rel=\"noopener noreferrer nofollow\">https://a.b/c</a>。好</p>\n",
		"(https://a.b/x_y_z).":                           "<p>(<a href=\"https://a.b/x_y_z\" rel=\"noopener noreferrer nofollow\">https://a.b/x_y_z</a>).</p>\n",
		"[x](javascript:alert(1))":                       "<p>x (<code>javascript:alert(1)</code>)</p>\n",
		"[f](internal/a.go)":                             "<p>f (<code>internal/a.go</code>)</p>\n",
		"![p](https://a.b/p.png)":                        "<p><a href=\"https://a.b/p.png\" rel=\"noopener noreferrer nofollow\">p</a></p>\n",
		"<b>no</b> \\*x\\* `<i>`":                        "<p>&lt;b&gt;no&lt;/b&gt; *x* <code>&lt;i&gt;</code></p>\n",
		"[\"](https://a/\"onx=1)":                        "<p>&#34; (<code>https://a/&#34;onx=1</code>)</p>\n",
		"&amp; &lt;i&gt; &hellip; &#x202e;&nope; `&lt;`": "<p>&amp; &lt;i&gt; … &amp;#x202e;&amp;nope; <code>&amp;lt;</code></p>\n",
		"<https://a.b>":                                  "<p><a href=\"https://a.b\" rel=\"noopener noreferrer nofollow\">https://a.b</a></p>\n",
		"[![p](https://a.b/p.png) https://c](https://d)": "<p><a href=\"https://d\" rel=\"noopener noreferrer nofollow\">p https://c</a></p>\n",
		"One\ntwo\n---\n\nThree\n===\nx":                 "<h4>One\ntwo</h4>\n<h3>Three</h3>\n<p>x</p>\n",
		"a\n\n    if x {\n\n    \t<y>\n    }\n\nb":       "<p>a</p>\n<pre><code>if x {\n\n\t&lt;y&gt;\n}</code></pre>\n<p>b</p>\n",
		"- a\n\n      code\n- b":                         "<ul>\n<li><p>a</p>\n<pre><code>code</code></pre>\n</li>\n<li><p>b</p>\n</li>\n</ul>\n",
		"a\n    b":                                       "<p>a\n    b</p>\n",
		"|a|\n|-|\n|x<br>y|":                             "<div class=\"table\"><table>\n<thead>\n<tr><th>a</th></tr>\n</thead>\n<tbody>\n<tr><td>x<br>y</td></tr>\n</tbody>\n</table></div>\n",
		"***both*** and **a *b* c**":                     "<p><strong><em>both</em></strong> and <strong>a <em>b</em> c</strong></p>\n",
		"Foot\\*note *a \\* b* c*":                       "<p>Foot*note <em>a * b</em> c*</p>\n",
		"Open __init__.py, __main__ and _x_.y":           "<p>Open __init__.py, __main__ and _x_.y</p>\n",
		"__two words__ and _one_.":                       "<p><strong>two words</strong> and <em>one</em>.</p>\n",
		"* x\n    * four\n    * five":                    "<ul>\n<li><p>x</p>\n<ul>\n<li><p>four</p>\n</li>\n<li><p>five</p>\n</li>\n</ul>\n</li>\n</ul>\n",
		"- a\n\t- b":                                     "<ul>\n<li><p>a</p>\n<ul>\n<li><p>b</p>\n</li>\n</ul>\n</li>\n</ul>\n",
		"看https://x.org":                                 "<p>看<a href=\"https://x.org\" rel=\"noopener noreferrer nofollow\">https://x.org</a></p>\n",
		"[s](<https://e.org/a b>)":                       "<p><a href=\"https://e.org/a%20b\" rel=\"noopener noreferrer nofollow\">s</a></p>\n",
		"## two\n#### four":                              "<h4>two</h4>\n<h6>four</h6>\n",
		"a  \nb\\\nc\nd":                                 "<p>a<br>b<br>c\nd</p>\n",
		"see [that][r], [R][] and [r], not [s][t]\n\n[r]: https://a.b \"T\"": "<p>see <a href=\"https://a.b\" rel=\"noopener noreferrer nofollow\">that</a>, <a href=\"https://a.b\" rel=\"noopener noreferrer nofollow\">R</a> and " +
			"<a href=\"https://a.b\" rel=\"noopener noreferrer nofollow\">r</a>, not [s][t]</p>\n",
		"[1]: https://a.b":                "<p>[1]: <a href=\"https://a.b\" rel=\"noopener noreferrer nofollow\">https://a.b</a></p>\n",
		"[r]\n\n[r]: javascript:x":        "<p>[r]</p>\n<p>[r]: javascript:x</p>\n",
		"```\n[r]: https://a.b\n```\n[r]": "<pre><code>[r]: https://a.b</code></pre>\n<p>[r]</p>\n",
		"a | b\nno table":                 "<p>a | b\nno table</p>\n",
		"** not bold **, * nor * this":    "<p>** not bold **, * nor * this</p>\n",
		"```diff\n-a\n+b\n```":            "<pre class=\"diff\"><span class=\"d\">-a</span><span class=\"a\">+b</span></pre>\n",
		"```\nopen":                       "<pre><code>open</code></pre>\n",
		strings.Repeat("> ", 40) + "x":    "",
		strings.Repeat("*a ", 3000):       "",
		strings.Repeat("- ", 200) + "x":   "",
	} {
		got := rendered(text)
		if want != "" && got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
		if strings.Count(got, "<p>") != strings.Count(got, "</p>") || strings.Count(got, "<li>") != strings.Count(got, "</li>") {
			t.Errorf("%.40q: what was opened is not closed: %.200q", text, got)
		}
	}
}

// FuzzProse: whatever is written, no tag but ours comes out.
func FuzzProse(f *testing.F) {
	f.Add("- a\n  > **b** | `c` [d](e)\n|--|\n")
	f.Add("a|b\n-|-\n1|2\n\n```x\n<script>")
	f.Fuzz(func(t *testing.T, text string) {
		got := rendered(text)
		for part := range strings.SplitSeq(got, "<") {
			tag, _, _ := strings.Cut(strings.TrimPrefix(part, "/"), ">")
			name, _, _ := strings.Cut(tag, " ")
			if strings.Contains(part, ">") && !strings.Contains(" p br h3 hr ul ol li blockquote pre code span div table thead tbody tr th td strong em del a ", " "+name+" ") {
				t.Errorf("%q gives %q", text, got)
			}
		}
	})
}

// TestWhatACallIsAbout is told by its first text, however deep it stands.
func TestWhatACallIsAbout(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a.go","content":"x"}`: "a.go",
		`{"questions":[{"question":"Which colour?\nNow.","options":["red"]},{"question":"Why?"}]}`: "Which colour?",
		`{"todos":[{"n":1,"done":false,"deep":{"list":[2,["x"]]}}]}`:                               "x",
		`{"ids":[1,2]}`:     "[1,2]",
		`{"about":"[1] 2"}`: "[1] 2",
		`{}`:                "",
		`no JSON`:           "",
	} {
		if got := (Locale{}).headline(&Call{Args: args}); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	if got := (Locale{}).headline(&Call{Title: "pp.txt", Args: `{"patch":"*** Begin Patch"}`}); got != "pp.txt" {
		t.Errorf("what was shown of it is %q", got)
	}
}

// TestBlanksAreSeen at the ends of what a call was told, in Markdown too.
func TestBlanksAreSeen(t *testing.T) {
	var b strings.Builder
	m := markdown{Writer: bufio.NewWriter(&b)}
	m.writeFields(splitFields(`{"old_string":"    return a + b","new_string":"return b"}`))
	m.Flush()
	if got := b.String(); !strings.Contains(got, "```\n    return a + b\n```") || !strings.Contains(got, "`return b`") {
		t.Errorf("written is %s", got)
	}
}

// TestAPlanIsRead as it is written, in Markdown.
func TestAPlanIsRead(t *testing.T) {
	var b strings.Builder
	p := page{Writer: bufio.NewWriter(&b)}
	p.writeFields(splitFields(`{"plan":"# Steps\n\n- **one**"}`))
	p.writeFields(p.questionFields(uip.Request{Display: uip.Display{Content: display.Text("1. two")}}))
	p.writeFields(p.questionFields(uip.Request{Purpose: uip.PurposeConfirmRiskyAction, Display: uip.Display{Content: display.Text("1. three")}}))
	p.writeOutput(display.Blocks{display.Code{Lang: display.LangMarkdown, Source: "*four*"}})
	p.Flush()
	for _, want := range []string{"<h3>Steps</h3>", "<strong>one</strong>", "<li><p>two</p>", "<pre>1. three</pre>", "<em>four</em>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in %s", want, b.String())
		}
	}
}
