package export

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/chat"
	"coder/internal/core/lazy"
	"coder/internal/core/sanitize"
)

// Markdown writes t as a Markdown document, without system texts.
func Markdown(w io.Writer, t Transcript, s Speech) error {
	m := markdown{bufio.NewWriter(w), s}
	m.printf("# %s\n\n", mdLine(m.title(t)))
	for _, f := range m.facts(t) {
		m.printf("- %s\n", m.t("%s: %s", f[0], mdLine(f[1])))
	}
	m.WriteString("\n")
	for _, e := range t.Entries {
		m.entry(e)
	}
	if err := m.Flush(); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

type markdown struct {
	*bufio.Writer
	Speech
}

func (m markdown) printf(format string, args ...any) { fmt.Fprintf(m, format, args...) }

func (m markdown) entry(e Entry) {
	switch e := e.(type) {
	case Said:
		if e.Role == chat.System {
			return
		}
		m.heading(2, m.who(e.Role), "", e.Time)
		if e.Reasoning != "" {
			m.prose(m.t("Thinking")+":\n\n"+e.Reasoning, "> ")
		}
		quote := ""
		if e.Role == chat.User {
			quote = "> "
		}
		m.prose(e.Text, quote)
		m.pictures(e.Images)
		if e.Interrupted {
			m.printf("*%s*\n\n", m.t("(interrupted)"))
		}
	case *Called:
		m.heading(3, m.name(e), m.headline(e), time.Time{})
		m.fields(layout(e.Args))
		outcome := m.outcome(e)
		if e.Took > 0 {
			outcome += fmt.Sprintf(" (%s)", e.Took)
		}
		m.printf("**%s**\n\n", outcome)
		m.fields(layout(e.Result))
		m.pictures(e.Images)
	case Local:
		m.heading(3, m.t("Command"), e.Input, e.Time)
		m.fields([]field{{text: m.blocks(e.Output), kind: long}})
	case *Asked:
		title, about := m.question(e)
		m.heading(3, m.t("Question"), title, e.Time)
		m.prose(about, "")
		m.fields(m.content(e.Request))
		m.prose(m.choices(e.Request), "")
		m.printf("%s\n\n", m.t("Answer: %s", mdLine(m.answer(e))))
	case Planned:
		m.heading(3, m.t("Todos"), "", e.Time)
		for _, todo := range e.Todos {
			m.printf("- [%s] %s\n", checkbox(string(todo.Status)), mdLine(todo.Content))
		}
		m.WriteString("\n")
	case Noted:
		m.printf("*%s*\n\n", mdLine(m.said(e.Text)))
		m.fields(appendField(nil, "", m.detail(e)))
	}
}

func (m markdown) pictures(list []chat.Image) {
	for range list {
		m.printf("%s\n\n", m.t("(an image)"))
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04:05 MST")
}

// checkbox returns the checkbox of a todo.
func checkbox(status string) string {
	switch status {
	case "completed":
		return "x"
	case "in_progress":
		return "~"
	}
	return " "
}

func (m markdown) heading(level int, what, about string, at time.Time) {
	title := mdLine(what)
	if about != "" {
		title = m.t("%s: %s", title, mdLine(sanitize.Line(about, shortLimit)))
	}
	m.printf("%s %s", strings.Repeat("#", level), title)
	if s := stamp(at); s != "" {
		m.printf(" (%s)", s)
	}
	m.WriteString("\n\n")
}

func (m markdown) fields(list []field) {
	for _, f := range list {
		switch {
		case strings.TrimSpace(f.text) == "":
		case f.kind == short && f.text == strings.TrimSpace(f.text): // else spaces at its ends would be invisible
			m.printf("%s: %s\n\n", mdLine(f.name), mdCode(f.text))
		case f.kind == diff:
			m.fenced("diff", f)
		case f.kind == written:
			m.prose(f.text, "> ")
		default:
			m.fenced("", f)
		}
	}
}

// fenced writes a code block with a fence that nothing in it can close.
func (m markdown) fenced(lang string, f field) {
	if f.name != "" {
		m.printf("%s:\n\n", mdLine(f.name))
	}
	text := sanitize.Text(f.text)
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	m.printf("%s%s\n%s\n%s\n\n", fence, lang, strings.TrimRight(text, "\n"), fence)
}

func longestRun(s string, c rune) int {
	longest, run := 0, 0
	for _, r := range s {
		if run++; r != c {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// prose writes user-written Markdown unchanged, but without raw HTML and with every code block closed.
func (m markdown) prose(text, quote string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	var b strings.Builder
	for lines := strings.Split(strings.Trim(sanitize.Text(text), "\n"), "\n"); len(lines) > 0; {
		line, n := lines[0], 1
		switch {
		case frontmatter.Fence(line) != "":
			var lang, code string
			lang, code, n = codeBlock(lines)
			lang, _, _ = strings.Cut(lang, " ")
			if strings.Trim(lang, "abcdefghijklmnopqrstuvwxyz0123456789+#.-_") != "" {
				lang = "" // not a plain word
			}
			fence := strings.Repeat("`", max(3, longestRun(code, '`')+1))
			setIn := line[:len(line)-len(strings.TrimLeft(line, " "))] // as in a list item
			for _, line := range strings.Split(fence+lang+"\n"+code+"\n"+fence, "\n") {
				b.WriteString(setIn + line + "\n")
			}
		case headingLine(line):
			level := len(line) - len(strings.TrimLeft(line, "#"))
			b.WriteString(strings.Repeat("#", min(level+3, 6)) + " " + noHTML(strings.Trim(line, "# ")) + "\n")
		case len(lines) > 1 && !startsBlock(lines) && underline().MatchString(lines[1]) && blankBefore(b.String()):
			b.WriteString("#### " + noHTML(strings.TrimSpace(line)) + "\n")
			n = 2
		default:
			b.WriteString(noHTML(line) + "\n")
		}
		lines = lines[n:]
	}
	for line := range strings.SplitSeq(strings.Trim(b.String(), "\n"), "\n") {
		end := ""
		if strings.HasSuffix(line, "  ") && strings.TrimSpace(line) != "" {
			end = "  " // the next text begins on its own line
		}
		m.WriteString(strings.TrimRight(quote+line, " ") + end + "\n")
	}
	m.WriteString("\n")
}

// blankBefore reports whether text is empty or ends with a blank line.
func blankBefore(text string) bool { return text == "" || strings.HasSuffix(text, "\n\n") }

// tagStart matches the start of a tag, an address in angle
// brackets, which is not a tag, and a line break in a table.
var tagStart = lazy.Regexp(`<https?://[^\n<>"']+>|<(?i:br) ?/?>|<`)

// noHTML makes tags in a line of prose harmless; code spans show them unchanged.
func noHTML(line string) string {
	var b strings.Builder
	for line != "" {
		if code, n := codeSpan(line); n > 0 {
			b.WriteString(mdCode(code))
			line = line[n:]
			continue
		}
		signs := len(line) - len(strings.TrimLeft(line, "`")) // unclosed backticks
		n := signs + strings.IndexByte(line[signs:]+"`", '`')
		b.WriteString(tagStart().ReplaceAllStringFunc(line[:n], func(found string) string {
			if found == "<" {
				return "&lt;"
			}
			return found
		}))
		line = line[n:]
	}
	return b.String()
}

// mdLine returns s on one line, with Markdown characters escaped.
func mdLine(s string) string {
	var b strings.Builder
	for _, r := range sanitize.Line(s, 0) {
		if strings.ContainsRune("\\`*_[]<>#|~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// mdCode returns s as a code span that nothing in it can close.
func mdCode(s string) string {
	s = sanitize.Line(s, 0)
	ticks := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return ticks + s + ticks
}
