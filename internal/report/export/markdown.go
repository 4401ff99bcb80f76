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
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
)

// Markdown writes t as a Markdown document, without system texts.
func Markdown(w io.Writer, t Transcript, s Locale) error {
	m := markdown{bufio.NewWriter(w), s}
	m.printf("# %s\n\n", markdownLine(m.sessionTitle(t)))
	for _, f := range m.headerRows(t) {
		m.printf("- %s\n", m.t("%s: %s", f[0], markdownLine(f[1])))
	}
	m.WriteString("\n")
	for _, e := range t.Entries {
		m.writeEntry(e)
	}
	if err := m.Flush(); err != nil {
		return message.Errorf("write Markdown: %w", err)
	}
	return nil
}

type markdown struct {
	*bufio.Writer
	Locale
}

func (m markdown) printf(format string, args ...any) { fmt.Fprintf(m, format, args...) }

func (m markdown) writeEntry(e Entry) {
	switch e := e.(type) {
	case Message:
		if e.Role == chat.System {
			return
		}
		m.writeHeading(2, m.roleName(e.Role), "", e.Time)
		if e.Reasoning != "" {
			m.writeProse(m.t("Thinking")+":\n\n"+e.Reasoning, "> ")
		}
		quote := ""
		if e.Role == chat.User {
			quote = "> "
		}
		m.writeProse(e.Text, quote)
		m.writeImages(e.Images)
		if e.Interrupted {
			m.printf("*%s*\n\n", m.t("(interrupted)"))
		}
	case *Call:
		m.writeHeading(3, m.callName(e), m.headline(e), time.Time{})
		m.writeFields(splitFields(e.Args))
		outcome := m.outcome(e)
		if e.Duration > 0 {
			outcome += fmt.Sprintf(" (%s)", e.Duration)
		}
		m.printf("**%s**\n\n", outcome)
		m.writeFields(splitFields(e.Result))
		m.writeImages(e.Images)
	case Command:
		m.writeHeading(3, m.t("Command"), e.Input, e.Time)
		m.writeFields([]field{{text: m.blocksText(e.Output), kind: longField}})
	case *Question:
		title, about := m.questionText(e)
		m.writeHeading(3, m.t("Question"), title, e.Time)
		m.writeProse(about, "")
		m.writeFields(m.questionFields(e.Request))
		m.writeProse(m.optionList(e.Request), "")
		m.printf("%s\n\n", m.t("Answer: %s", markdownLine(m.answerText(e))))
	case TodoList:
		m.writeHeading(3, m.t("Todos"), "", e.Time)
		for _, todo := range e.Todos {
			m.printf("- [%s] %s\n", checkbox(string(todo.Status)), markdownLine(todo.Content))
		}
		m.WriteString("\n")
	case Note:
		m.printf("*%s*\n\n", markdownLine(m.translateText(e.Text)))
		m.writeFields(appendField(nil, "", m.noteDetail(e)))
	}
}

func (m markdown) writeImages(list []chat.Image) {
	for range list {
		m.printf("%s\n\n", m.t("(an image)"))
	}
}

func formatTime(t time.Time) string {
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

func (m markdown) writeHeading(level int, what, about string, at time.Time) {
	title := markdownLine(what)
	if about != "" {
		title = m.t("%s: %s", title, markdownLine(sanitize.Line(about, maxShortField)))
	}
	m.printf("%s %s", strings.Repeat("#", level), title)
	if s := formatTime(at); s != "" {
		m.printf(" (%s)", s)
	}
	m.WriteString("\n\n")
}

func (m markdown) writeFields(list []field) {
	for _, f := range list {
		switch {
		case strings.TrimSpace(f.text) == "":
		case f.kind == shortField && f.text == strings.TrimSpace(f.text): // else spaces at its ends would be invisible
			m.printf("%s: %s\n\n", markdownLine(f.name), markdownCode(f.text))
		case f.kind == diffField:
			m.writeFenced("diff", f)
		case f.kind == markdownField:
			m.writeProse(f.text, "> ")
		default:
			m.writeFenced("", f)
		}
	}
}

// writeFenced writes a code block with a fence that nothing in it can close.
func (m markdown) writeFenced(lang string, f field) {
	if f.name != "" {
		m.printf("%s:\n\n", markdownLine(f.name))
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

// writeProse writes user-written Markdown unchanged, but without raw HTML and with every code block closed.
func (m markdown) writeProse(text, quote string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	var b strings.Builder
	for lines := strings.Split(strings.Trim(sanitize.Text(text), "\n"), "\n"); len(lines) > 0; {
		line, n := lines[0], 1
		switch {
		case frontmatter.FenceMarker(line) != "":
			var lang, code string
			lang, code, n = parseCodeBlock(lines)
			lang, _, _ = strings.Cut(lang, " ")
			if strings.Trim(lang, "abcdefghijklmnopqrstuvwxyz0123456789+#.-_") != "" {
				lang = "" // not a plain word
			}
			fence := strings.Repeat("`", max(3, longestRun(code, '`')+1))
			setIn := line[:len(line)-len(strings.TrimLeft(line, " "))] // as in a list item
			for _, line := range strings.Split(fence+lang+"\n"+code+"\n"+fence, "\n") {
				b.WriteString(setIn + line + "\n")
			}
		case isHeading(line):
			level := len(line) - len(strings.TrimLeft(line, "#"))
			b.WriteString(strings.Repeat("#", min(level+3, 6)) + " " + escapeTags(strings.Trim(line, "# ")) + "\n")
		case len(lines) > 1 && !startsBlock(lines) && underlinePattern().MatchString(lines[1]) &&
			endsWithBlankLine(b.String()):
			b.WriteString("#### " + escapeTags(strings.TrimSpace(line)) + "\n")
			n = 2
		default:
			b.WriteString(escapeTags(line) + "\n")
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

// endsWithBlankLine reports whether text is empty or ends with a blank line.
func endsWithBlankLine(text string) bool { return text == "" || strings.HasSuffix(text, "\n\n") }

// tagPattern matches the start of a tag, an address in angle
// brackets, which is not a tag, and a line break in a table.
var tagPattern = lazy.Regexp(`<https?://[^\n<>"']+>|<(?i:br) ?/?>|<`)

// escapeTags makes tags in a line of prose harmless; code spans show them unchanged.
func escapeTags(line string) string {
	var b strings.Builder
	for line != "" {
		if code, n := parseCodeSpan(line); n > 0 {
			b.WriteString(markdownCode(code))
			line = line[n:]
			continue
		}
		signs := len(line) - len(strings.TrimLeft(line, "`")) // unclosed backticks
		n := signs + strings.IndexByte(line[signs:]+"`", '`')
		b.WriteString(tagPattern().ReplaceAllStringFunc(line[:n], func(found string) string {
			if found == "<" {
				return "&lt;"
			}
			return found
		}))
		line = line[n:]
	}
	return b.String()
}

// markdownLine returns s on one line, with Markdown characters escaped.
func markdownLine(s string) string {
	var b strings.Builder
	for _, r := range sanitize.Line(s, 0) {
		if strings.ContainsRune("\\`*_[]<>#|~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// markdownCode returns s as a code span that nothing in it can close.
func markdownCode(s string) string {
	s = sanitize.Line(s, 0)
	ticks := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return ticks + s + ticks
}
