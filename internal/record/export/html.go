package export

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/sanitize"
)

//go:embed style.css
var style string

// HTML writes t as one page that loads nothing and runs nothing.
func HTML(w io.Writer, t Transcript) error {
	p := page{bufio.NewWriter(w)}
	p.raw(pageStart)
	p.raw("<title>", escape(sanitize.Line(title(t), 0)), "</title>\n<style>\n", style, "</style>\n</head>\n<body>\n<main>\n")
	p.raw("<h1>", escape(sanitize.Line(title(t), 0)), "</h1>\n<dl>\n")
	for _, f := range facts(t) {
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

// pageStart forbids, beside writing none, all scripts and all requests.
const pageStart = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
`

// page writes HTML. Only raw writes tags; everything else is text.
type page struct{ *bufio.Writer }

func (p page) raw(parts ...string) {
	for _, s := range parts {
		p.WriteString(s)
	}
}

// escaper replaces what HTML would take for markup, in text and in attributes.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "`", "&#96;")

// escape makes s text: no markup, and no character that hides or reorders.
func escape(s string) string { return escaper.Replace(sanitize.Text(s)) }

func (p page) entry(e Entry) {
	switch e := e.(type) {
	case Said:
		if e.Role == chat.System {
			p.folded("System text", e.Text)
			return
		}
		class := "assistant"
		if e.Role == chat.User {
			class = "user"
		}
		p.open(class, who(e.Role), e.Time)
		if e.Reasoning != "" {
			p.folded("Thinking", e.Reasoning)
		}
		p.prose(e.Text)
		p.images(e.Images)
		if e.Interrupted {
			p.raw(`<p class="failed">(interrupted)</p>`, "\n")
		}
		if e.Model != "" {
			p.raw(`<p class="dim">`, escape(e.Model))
			if e.Usage != nil {
				fmt.Fprintf(p, " · %d tokens in, %d out", e.Usage.In, e.Usage.Out)
			}
			p.raw("</p>\n")
		}
		p.raw("</section>\n")
	case *Called:
		class, outcome := "ok", "done"
		switch {
		case !e.Answered:
			class, outcome = "dim", "no result"
		case e.Failed:
			class, outcome = "failed", "failed"
		}
		p.raw(`<details class="tool"><summary><strong>`, escape(e.Name), "</strong> ")
		if h := headline(e.Args); h != "" {
			p.raw("<code>", escape(h), "</code> ")
		}
		p.raw(`<span class="`, class, `">`, outcome, "</span>")
		if e.Took > 0 {
			p.raw(` <span class="dim">`, e.Took.String(), "</span>")
		}
		p.raw("</summary>\n")
		p.fields(layout(e.Args))
		p.raw(`<p class="label">Result</p>`, "\n")
		p.fields(layout(e.Result))
		p.images(e.Images)
		p.raw("</details>\n")
	case Local:
		p.open("local", "Command", e.Time)
		p.raw("<p><code>", escape(e.Input), "</code></p>\n")
		p.fields(appendField(nil, "", e.Output))
		p.raw("</section>\n")
	case *Asked:
		p.open("asked", "Question", e.Time)
		p.raw("<p>", escape(e.Title), "</p>\n")
		p.prose(e.Description)
		p.fields(blockField(e.Content))
		p.raw("<p><strong>Answer:</strong> ", escape(orNone(e.Answer)), "</p>\n</section>\n")
	case Planned:
		p.open("todos", "Todos", e.Time)
		p.raw("<ul>\n")
		for _, todo := range e.Todos {
			p.raw("<li>[", checkbox(string(todo.Status)), "] ", escape(todo.Content), "</li>\n")
		}
		p.raw("</ul>\n</section>\n")
	case Noted:
		if e.Detail == "" {
			p.raw(`<p class="dim">`, escape(e.Text), "</p>\n")
			return
		}
		p.raw("<details><summary>", escape(e.Text), "</summary>\n")
		p.fields(appendField(nil, "", e.Detail))
		p.raw("</details>\n")
	}
}

// open begins a section. class and name are ours.
func (p page) open(class, name string, at time.Time) {
	p.raw(`<section class="`, class, `">`, "\n<h2>", name)
	if s := stamp(at); s != "" {
		p.raw(" <time>", escape(s), "</time>")
	}
	p.raw("</h2>\n")
}

// folded writes a text that is shown when asked for.
func (p page) folded(name, text string) {
	p.raw("<details><summary>", name, "</summary>\n")
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
		case long:
			p.raw("<pre>", escape(strings.TrimRight(f.text, "\n")), "</pre>\n")
		}
	}
}

// diff writes a diff with its lines coloured.
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

// Pictures that are put into the page.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

const pictureLimit = 8 << 20 // bytes

func (p page) images(list []chat.Image) {
	for _, img := range list {
		i := slices.Index(pictureTypes, img.MediaType)
		if i < 0 || len(img.Data) > pictureLimit {
			p.raw("<p>(a picture)</p>\n")
			continue
		}
		p.raw(`<p><img alt="picture" src="data:`, pictureTypes[i], ";base64,", base64.StdEncoding.EncodeToString(img.Data), `"></p>`, "\n")
	}
}

// Fragment is Markdown as HTML that loads nothing and runs nothing, for a page of
// somebody else's.
func Fragment(text string) string {
	var b strings.Builder
	p := page{bufio.NewWriter(&b)}
	p.prose(text)
	_ = p.Flush() // a Builder takes everything
	return b.String()
}
