package export

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
)

//go:embed style.css
var stylesheet string

// HTML writes t as one page that loads nothing and runs nothing.
func HTML(w io.Writer, t Transcript, s Locale) error {
	p := page{Writer: bufio.NewWriter(w), Locale: s}
	p.writeRaw("<!doctype html>\n<html lang=\"", escape(cmp.Or(s.Lang, "en")), "\">\n", pageStart)
	p.writeRaw("<title>", escape(p.sessionTitle(t)), "</title>\n<style>\n", stylesheet,
		"</style>\n</head>\n<body>\n<main>\n")
	p.writeRaw("<h1>", escape(p.sessionTitle(t)), "</h1>\n<dl>\n")
	for _, f := range p.headerRows(t) {
		p.writeRaw("<dt>", escape(f[0]), "</dt><dd>", escape(f[1]), "</dd>\n")
	}
	p.writeRaw("</dl>\n")
	p.writeChart(t.Window)
	for _, e := range t.Entries {
		p.writeEntry(e)
	}
	p.writeRaw("</main>\n</body>\n</html>\n")
	if err := p.Flush(); err != nil {
		return message.Errorf("write HTML: %w", err)
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
	Locale
	inLink      bool              // inside a link, where links cannot be nested
	linkTargets map[string]string // addresses of the text's link references, by name
}

func (p page) writeRaw(parts ...string) {
	for _, s := range parts {
		p.WriteString(s)
	}
}

// escaper escapes markup characters, in text and in attributes.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "`", "&#96;")

// escape escapes s: no markup, and no character that hides or reorders text.
func escape(s string) string { return escaper.Replace(sanitize.Text(s)) }

func (p page) writeEntry(e Entry) {
	switch e := e.(type) {
	case Message:
		if e.Role == chat.System {
			p.writeCollapsed(p.t("System text"), e.Text)
			return
		}
		class := "assistant"
		if e.Role == chat.User {
			class = "user"
		}
		p.openSection(class, p.roleName(e.Role), e.Time)
		if e.Reasoning != "" {
			p.writeCollapsed(p.t("Thinking"), e.Reasoning)
		}
		p.writeMarkdown(e.Text)
		p.writeImages(e.Images)
		if e.Interrupted {
			p.writeRaw(`<p class="failed">`, escape(p.t("(interrupted)")), "</p>\n")
		}
		if e.Model != "" {
			p.writeRaw(`<p class="dim">`, escape(e.Model))
			if e.Usage != nil {
				p.writeRaw(" · ", escape(p.t("%d tokens in, %d out", e.Usage.In, e.Usage.Out)))
			}
			p.writeRaw("</p>\n")
		}
		p.writeRaw("</section>\n")
	case *Call:
		p.writeCall(e)
	case Command:
		p.openSection("local", p.t("Command"), e.Time)
		p.writeRaw("<p><code>", escape(e.Input), "</code></p>\n")
		p.writeOutput(e.Output)
		p.writeRaw("</section>\n")
	case *Question:
		title, about := p.questionText(e)
		p.openSection("asked", p.t("Question"), e.Time)
		p.writeRaw("<p>", escape(title), "</p>\n")
		p.writeMarkdown(about)
		p.writeFields(p.questionFields(e.Request))
		p.writeMarkdown(p.optionList(e.Request))
		label, apart := p.t("Answer:"), " "
		if strings.HasSuffix(label, "：") { // it includes its own space
			apart = ""
		}
		p.writeRaw("<p><strong>", escape(label), "</strong>", apart, escape(p.answerText(e)), "</p>\n</section>\n")
	case TodoList:
		p.openSection("todos", p.t("Todos"), e.Time)
		p.writeRaw("<ul>\n")
		for _, todo := range e.Todos {
			p.writeRaw("<li>[", checkbox(string(todo.Status)), "] ", escape(todo.Content), "</li>\n")
		}
		p.writeRaw("</ul>\n</section>\n")
	case Note:
		if e.Detail == "" {
			p.writeRaw(`<p class="dim">`, escape(p.translateText(e.Text)), "</p>\n")
			return
		}
		p.writeRaw("<details><summary>", escape(p.translateText(e.Text)), "</summary>\n")
		p.writeFields(appendField(nil, "", p.noteDetail(e)))
		p.writeRaw("</details>\n")
	}
}

func (p page) writeCall(c *Call) {
	class := "ok"
	switch {
	case !c.Answered:
		class = "dim"
	case c.Failed:
		class = "failed"
	}
	p.writeRaw(`<details class="tool"><summary><strong>`, escape(p.callName(c)), "</strong> ")
	if h := p.headline(c); h != "" {
		p.writeRaw("<code>", escape(h), "</code> ")
	}
	p.writeRaw(`<span class="`, class, `">`, escape(p.outcome(c)), "</span>")
	if c.Duration > 0 {
		p.writeRaw(` <span class="dim">`, c.Duration.String(), "</span>")
	}
	p.writeRaw("</summary>\n")
	p.writeFields(splitFields(c.Args))
	p.writeRaw(`<p class="label">`, escape(p.t("Result")), "</p>\n")
	p.writeFields(splitFields(c.Result))
	p.writeImages(c.Images)
	p.writeRaw("</details>\n")
}

// writeOutput writes the output of a command.
func (p page) writeOutput(all display.Blocks) {
	if len(all) == 1 {
		if c, ok := all[0].(display.Code); ok && c.Lang == display.LangMarkdown {
			p.writeMarkdown(c.Source)
			return
		}
	}
	p.writeFields(appendField(nil, "", p.blocksText(all)))
}

// openSection begins a section. class is coder's own text.
func (p page) openSection(class, name string, at time.Time) {
	p.writeRaw(`<section class="`, class, `">`, "\n<h2>", escape(name))
	if s := formatTime(at); s != "" {
		p.writeRaw(" <time>", escape(s), "</time>")
	}
	p.writeRaw("</h2>\n")
}

// writeCollapsed writes text that is collapsed at first.
func (p page) writeCollapsed(name, text string) {
	p.writeRaw("<details><summary>", escape(name), "</summary>\n")
	p.writeMarkdown(text)
	p.writeRaw("</details>\n")
}

func (p page) writeFields(list []field) {
	for _, f := range list {
		if f.name != "" && f.kind != shortField {
			p.writeRaw(`<p class="label">`, escape(f.name), "</p>\n")
		}
		switch f.kind {
		case shortField:
			p.writeRaw("<p>", escape(f.name), ": <code>", escape(f.text), "</code></p>\n")
		case diffField:
			p.writeDiff(f.text)
		case markdownField:
			p.writeMarkdown(f.text)
		case longField:
			p.writeRaw("<pre>", escape(strings.TrimRight(f.text, "\n")), "</pre>\n")
		}
	}
}

// writeDiff writes a diff with colored lines.
func (p page) writeDiff(text string) {
	p.writeRaw(`<pre class="diff">`)
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(text), "\n"), "\n") {
		p.writeRaw(`<span`, diffClass(line), `>`, escaper.Replace(line), "</span>")
	}
	p.writeRaw("</pre>\n")
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

// imageTypes are the image types that the page embeds.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

const maxImageBytes = 8 << 20 // bytes

func (p page) writeImages(list []chat.Image) {
	for _, img := range list {
		i := slices.Index(imageTypes, img.MediaType)
		if i < 0 || len(img.Data) > maxImageBytes {
			p.writeRaw("<p>", escape(p.t("(an image)")), "</p>\n")
			continue
		}
		p.writeRaw(`<p><img alt="picture" src="data:`, imageTypes[i], ";base64,", base64.StdEncoding.EncodeToString(img.Data), `"></p>`, "\n")
	}
}

// Fragment returns Markdown as HTML that loads nothing and runs nothing, for use in another page.
func Fragment(text string) string {
	var b strings.Builder
	p := page{Writer: bufio.NewWriter(&b)}
	p.writeMarkdown(text)
	_ = p.Flush() // a Builder never fails
	return b.String()
}
