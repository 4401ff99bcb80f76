package export

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
)

//go:embed style.css
var style string

// HTML writes t as one page that loads nothing and runs nothing.
func HTML(w io.Writer, t Transcript, s Speech) error {
	p := page{Writer: bufio.NewWriter(w), Speech: s}
	p.raw("<!doctype html>\n<html lang=\"", escape(cmp.Or(s.Lang, "en")), "\">\n", pageStart)
	p.raw("<title>", escape(p.title(t)), "</title>\n<style>\n", style, "</style>\n</head>\n<body>\n<main>\n")
	p.raw("<h1>", escape(p.title(t)), "</h1>\n<dl>\n")
	for _, f := range p.facts(t) {
		p.raw("<dt>", escape(f[0]), "</dt><dd>", escape(f[1]), "</dd>\n")
	}
	p.raw("</dl>\n")
	p.picture(t.Filling)
	for _, e := range t.Entries {
		p.entry(e)
	}
	p.raw("</main>\n</body>\n</html>\n")
	if err := p.Flush(); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

// pageStart forbids all scripts and all requests, although the page contains none.
const pageStart = `<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
`

// page writes HTML. Only raw writes tags; everything else is text.
type page struct {
	*bufio.Writer
	Speech
	linked bool              // inside a link, where links cannot be nested
	places map[string]string // addresses of the text's link references, by name
}

func (p page) raw(parts ...string) {
	for _, s := range parts {
		p.WriteString(s)
	}
}

// escaper escapes markup characters, in text and in attributes.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "`", "&#96;")

// escape escapes s: no markup, and no character that hides or reorders text.
func escape(s string) string { return escaper.Replace(sanitize.Text(s)) }

func (p page) entry(e Entry) {
	switch e := e.(type) {
	case Said:
		if e.Role == chat.System {
			p.folded(p.t("System text"), e.Text)
			return
		}
		class := "assistant"
		if e.Role == chat.User {
			class = "user"
		}
		p.open(class, p.who(e.Role), e.Time)
		if e.Reasoning != "" {
			p.folded(p.t("Thinking"), e.Reasoning)
		}
		p.prose(e.Text)
		p.images(e.Images)
		if e.Interrupted {
			p.raw(`<p class="failed">`, escape(p.t("(interrupted)")), "</p>\n")
		}
		if e.Model != "" {
			p.raw(`<p class="dim">`, escape(e.Model))
			if e.Usage != nil {
				p.raw(" · ", escape(p.t("%d tokens in, %d out", e.Usage.In, e.Usage.Out)))
			}
			p.raw("</p>\n")
		}
		p.raw("</section>\n")
	case *Called:
		p.called(e)
	case Local:
		p.open("local", p.t("Command"), e.Time)
		p.raw("<p><code>", escape(e.Input), "</code></p>\n")
		p.output(e.Output)
		p.raw("</section>\n")
	case *Asked:
		title, about := p.question(e)
		p.open("asked", p.t("Question"), e.Time)
		p.raw("<p>", escape(title), "</p>\n")
		p.prose(about)
		p.fields(p.content(e.Request))
		p.prose(p.choices(e.Request))
		label, apart := p.t("Answer:"), " "
		if strings.HasSuffix(label, "：") { // it includes its own space
			apart = ""
		}
		p.raw("<p><strong>", escape(label), "</strong>", apart, escape(p.answer(e)), "</p>\n</section>\n")
	case Planned:
		p.open("todos", p.t("Todos"), e.Time)
		p.raw("<ul>\n")
		for _, todo := range e.Todos {
			p.raw("<li>[", checkbox(string(todo.Status)), "] ", escape(todo.Content), "</li>\n")
		}
		p.raw("</ul>\n</section>\n")
	case Noted:
		if e.Detail == "" {
			p.raw(`<p class="dim">`, escape(p.said(e.Text)), "</p>\n")
			return
		}
		p.raw("<details><summary>", escape(p.said(e.Text)), "</summary>\n")
		p.fields(appendField(nil, "", p.detail(e)))
		p.raw("</details>\n")
	}
}

func (p page) called(c *Called) {
	class := "ok"
	switch {
	case !c.Answered:
		class = "dim"
	case c.Failed:
		class = "failed"
	}
	p.raw(`<details class="tool"><summary><strong>`, escape(p.name(c)), "</strong> ")
	if h := p.headline(c); h != "" {
		p.raw("<code>", escape(h), "</code> ")
	}
	p.raw(`<span class="`, class, `">`, escape(p.outcome(c)), "</span>")
	if c.Took > 0 {
		p.raw(` <span class="dim">`, c.Took.String(), "</span>")
	}
	p.raw("</summary>\n")
	p.fields(layout(c.Args))
	p.raw(`<p class="label">`, escape(p.t("Result")), "</p>\n")
	p.fields(layout(c.Result))
	p.images(c.Images)
	p.raw("</details>\n")
}

// output writes the output of a command.
func (p page) output(all display.Blocks) {
	if len(all) == 1 {
		if c, ok := all[0].(display.Code); ok && c.Lang == display.Markdown {
			p.prose(c.Source)
			return
		}
	}
	p.fields(appendField(nil, "", p.blocks(all)))
}

// open begins a section. class is coder's own text.
func (p page) open(class, name string, at time.Time) {
	p.raw(`<section class="`, class, `">`, "\n<h2>", escape(name))
	if s := stamp(at); s != "" {
		p.raw(" <time>", escape(s), "</time>")
	}
	p.raw("</h2>\n")
}

// folded writes text that is collapsed at first.
func (p page) folded(name, text string) {
	p.raw("<details><summary>", escape(name), "</summary>\n")
	p.prose(text)
	p.raw("</details>\n")
}

func (p page) fields(list []field) {
	for _, f := range list {
		if f.name != "" && f.kind != short {
			p.raw(`<p class="label">`, escape(f.name), "</p>\n")
		}
		switch f.kind {
		case short:
			p.raw("<p>", escape(f.name), ": <code>", escape(f.text), "</code></p>\n")
		case diff:
			p.diff(f.text)
		case written:
			p.prose(f.text)
		case long:
			p.raw("<pre>", escape(strings.TrimRight(f.text, "\n")), "</pre>\n")
		}
	}
}

// diff writes a diff with colored lines.
func (p page) diff(text string) {
	p.raw(`<pre class="diff">`)
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(text), "\n"), "\n") {
		p.raw(`<span`, diffClass(line), `>`, escaper.Replace(line), "</span>")
	}
	p.raw("</pre>\n")
}

func diffClass(line string) string {
	for _, sign := range []string{"+++ ", "--- ", "@@", "diff ", "index ", `\`} {
		if strings.HasPrefix(line, sign) {
			return ` class="h"`
		}
	}
	switch {
	case strings.HasPrefix(line, "+"):
		return ` class="a"`
	case strings.HasPrefix(line, "-"):
		return ` class="d"`
	}
	return ""
}

// pictureTypes are the image types that the page embeds.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

const pictureLimit = 8 << 20 // bytes

func (p page) images(list []chat.Image) {
	for _, img := range list {
		i := slices.Index(pictureTypes, img.MediaType)
		if i < 0 || len(img.Data) > pictureLimit {
			p.raw("<p>", escape(p.t("(an image)")), "</p>\n")
			continue
		}
		p.raw(`<p><img alt="picture" src="data:`, pictureTypes[i], ";base64,", base64.StdEncoding.EncodeToString(img.Data), `"></p>`, "\n")
	}
}

// Fragment returns Markdown as HTML that loads nothing and runs nothing, for use in another page.
func Fragment(text string) string {
	var b strings.Builder
	p := page{Writer: bufio.NewWriter(&b)}
	p.prose(text)
	_ = p.Flush() // a Builder never fails
	return b.String()
}
