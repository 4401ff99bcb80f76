package export

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/chat"
	"coder/internal/core/sanitize"
)

// Markdown writes t as a Markdown document. System texts are left out.
func Markdown(w io.Writer, t Transcript) error {
	m := markdown{bufio.NewWriter(w)}
	m.printf("# %s\n\n", mdLine(title(t)))
	for _, f := range facts(t) {
		m.printf("- %s: %s\n", f[0], mdLine(f[1]))
	}
	m.WriteString("\n")
	for _, e := range t.Entries {
		switch e := e.(type) {
		case Said:
			if e.Role == chat.System {
				continue
			}
			m.heading(2, who(e.Role), "", e.Time)
			if e.Reasoning != "" {
				m.prose("Thinking:\n\n"+e.Reasoning, "> ")
			}
			quote := ""
			if e.Role == chat.User {
				quote = "> "
			}
			m.prose(e.Text, quote)
			for range e.Images {
				m.WriteString("(a picture)\n\n")
			}
			if e.Interrupted {
				m.WriteString("*(interrupted)*\n\n")
			}
		case *Called:
			m.heading(3, e.Name, headline(e.Args), time.Time{})
			m.fields(layout(e.Args))
			outcome := "Result"
			switch {
			case !e.Answered:
				outcome = "No result"
			case e.Failed:
				outcome = "Failed"
			}
			if e.Took > 0 {
				outcome += fmt.Sprintf(" (%s)", e.Took)
			}
			m.printf("**%s**\n\n", outcome)
			m.fields(layout(e.Result))
			for range e.Images {
				m.WriteString("(a picture)\n\n")
			}
		case Local:
			m.heading(3, "Command", e.Input, e.Time)
			m.fields([]field{{text: e.Output, kind: long}})
		case *Asked:
			m.heading(3, "Question", e.Title, e.Time)
			m.prose(e.Description, "")
			m.fields(blockField(e.Content))
			m.printf("Answer: %s\n\n", mdLine(orNone(e.Answer)))
		case Planned:
			m.heading(3, "Todos", "", e.Time)
			for _, todo := range e.Todos {
				m.printf("- [%s] %s\n", checkbox(string(todo.Status)), mdLine(todo.Content))
			}
			m.WriteString("\n")
		case Noted:
			m.printf("*%s*\n\n", mdLine(e.Text))
			m.fields(appendField(nil, "", e.Detail))
		}
	}
	if err := m.Flush(); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

type markdown struct{ *bufio.Writer }

func (m markdown) printf(format string, args ...any) { fmt.Fprintf(m, format, args...) }

// title is what the session is called.
func title(t Transcript) string {
	if t.Head.Meta.Title != "" {
		return t.Head.Meta.Title
	}
	return "Session " + t.Head.ID
}

// facts are the lines at the top: names and values.
func facts(t Transcript) [][2]string {
	list := [][2]string{{"Session", t.Head.ID}, {"Model", t.Head.Meta.Model}, {"Folder", t.Head.Meta.Dir}, {"Started", stamp(t.Head.Created)}}
	if u := t.Used; u.In+u.Out > 0 {
		list = append(list, [2]string{"Tokens", fmt.Sprintf("%d in, %d out", u.In, u.Out)})
	}
	kept := list[:0]
	for _, f := range list {
		if f[1] != "" {
			kept = append(kept, f)
		}
	}
	return kept
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04:05 MST")
}

func orNone(s string) string {
	if s == "" {
		return "(none yet)"
	}
	return s
}

// checkbox is the sign of a todo.
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
	m.printf("%s %s", strings.Repeat("#", level), mdLine(what))
	if about != "" {
		m.printf(": %s", mdLine(sanitize.Line(about, shortLimit)))
	}
	if s := stamp(at); s != "" {
		m.printf(" (%s)", s)
	}
	m.WriteString("\n\n")
}

func (m markdown) fields(list []field) {
	for _, f := range list {
		switch {
		case strings.TrimSpace(f.text) == "":
		case f.kind == short:
			m.printf("%s: %s\n\n", mdLine(f.name), mdCode(f.text))
		case f.kind == diff:
			m.fenced("diff", f)
		default:
			m.fenced("", f)
		}
	}
}

// fenced writes a block of code with a fence that nothing in it can close.
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

// prose writes what someone wrote in Markdown: as it is, but without raw HTML,
// and with every block of code closed.
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
				lang = "" // no plain word
			}
			fence := strings.Repeat("`", max(3, longestRun(code, '`')+1))
			fmt.Fprintf(&b, "%s%s\n%s\n%s\n", fence, lang, code, fence)
		case headingLine(line):
			b.WriteString("#### " + noHTML(strings.Trim(line, "# ")) + "\n")
		default:
			b.WriteString(noHTML(line) + "\n")
		}
		lines = lines[n:]
	}
	for line := range strings.SplitSeq(strings.Trim(b.String(), "\n"), "\n") {
		m.WriteString(strings.TrimRight(quote+line, " ") + "\n")
	}
	m.WriteString("\n")
}

// noHTML makes tags in a line of prose harmless; code spans show them as they are.
func noHTML(line string) string {
	var b strings.Builder
	for line != "" {
		if code, n := codeSpan(line); n > 0 {
			b.WriteString(mdCode(code))
			line = line[n:]
			continue
		}
		signs := len(line) - len(strings.TrimLeft(line, "`")) // that open nothing
		n := signs + strings.IndexByte(line[signs:]+"`", '`')
		b.WriteString(strings.ReplaceAll(line[:n], "<", "&lt;"))
		line = line[n:]
	}
	return b.String()
}

// mdLine is s on one line, with what Markdown would take for a sign escaped.
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

// mdCode is s as a code span that nothing in it can close.
func mdCode(s string) string {
	s = sanitize.Line(s, 0)
	ticks := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return ticks + s + ticks
}
