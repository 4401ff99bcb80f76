package display

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// PlainText returns the blocks as English text, each block on its own line.
func (bs Blocks) PlainText() string {
	return bs.Translate(func(text string) string { return text }, utf8.RuneCountInString)
}

// Translate returns the blocks as text. say translates coder's own words, and width measures columns.
func (bs Blocks) Translate(say func(string) string, width func(string) int) string {
	var texts []string
	for _, b := range bs {
		switch b := b.(type) {
		case Text:
			texts = append(texts, say(string(b)))
		case Code:
			texts = append(texts, b.Source)
		case Diff:
			texts = append(texts, b.Unified)
		case Table:
			for _, line := range b.Lines(say, width) {
				texts = append(texts, line.String(width))
			}
		case Checklist:
			for _, c := range b {
				texts = append(texts, c.State.Symbol()+" "+c.Text)
			}
		case Shell:
			parts := []string{"$ " + b.Command, b.Status(), b.Output(say), say(b.Error)}
			texts = append(texts, strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n"))
		}
	}
	return strings.Join(texts, "\n")
}

// JoinCells returns a table as lines of cells separated by sep.
func (t Table) JoinCells(sep string) string {
	var b strings.Builder
	for _, row := range slices.Concat([][]Cell{t.Header}, t.Rows) {
		for i, c := range row {
			if i > 0 {
				b.WriteString(sep)
			}
			b.WriteString(c.Text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TableLine is a row of a table, with the column in which each cell begins.
type TableLine struct {
	Cells   []string
	Columns []int
}

func (l TableLine) String(width func(string) int) string {
	var b strings.Builder
	at := 0
	for i, cell := range l.Cells {
		b.WriteString(strings.Repeat(" ", max(l.Columns[i]-at, 0)) + cell)
		at = l.Columns[i] + width(cell)
	}
	return strings.TrimRight(b.String(), " ")
}

// FormatDuration formats d for people: 3 ms, 1.2 s, 2 min 5 s, 3 h 7 min.
func FormatDuration(d time.Duration) string {
	switch {
	case d < time.Second-time.Millisecond/2:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute-50*time.Millisecond:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	}
	if d >= time.Hour-time.Second/2 {
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// TranslateResult translates a call's result with say. If the text begins with a name from the title and a colon,
// as in "a.txt: no such file", the name stays as it is.
func TranslateResult(title, text, colon string, say func(string) string) string {
	for i := range text {
		name := text[:i]
		if strings.HasPrefix(text[i:], ": ") && (name == title || strings.HasSuffix(title, "("+name+")") ||
			strings.HasSuffix(title, " "+name)) {
			return name + colon + say(text[i+2:])
		}
	}
	return say(text)
}

// Plural returns one if n is 1, else many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// columnGap is the distance between columns.
const columnGap = 2

// Lines lays a table out in columns as wide as their widest cell. A row's last cell widens no column; a
// shorter row starts new widths.
func (t Table) Lines(say func(string) string, width func(string) int) (lines []TableLine) {
	rows := t.Rows
	if len(t.Header) > 0 {
		rows = slices.Concat([][]Cell{t.Header}, rows)
	}
	for _, row := range rows {
		l := TableLine{Columns: make([]int, len(row))}
		for _, c := range row {
			if c.Words {
				c.Text = say(c.Text)
			}
			l.Cells = append(l.Cells, c.Text)
		}
		if t.FirstWidth > 0 && len(row) == 2 {
			l.Columns[1] = t.FirstWidth
			if width(l.Cells[0]) >= t.FirstWidth {
				lines = append(lines, TableLine{l.Cells[:1], l.Columns[:1]})
				l.Cells = []string{"", l.Cells[1]}
			}
		}
		lines = append(lines, l)
	}
	if t.FirstWidth == 0 {
		AlignColumns(lines, width)
	}
	return lines
}

// AlignColumns sets the columns of lines, each as wide as its widest cell.
func AlignColumns(lines []TableLine, width func(string) int) {
	for column, more := 0, true; more; column++ {
		more = false
		for from := 0; from < len(lines); {
			to, widest := from, 0
			for ; to < len(lines) && len(lines[to].Cells) > column+1; to++ {
				widest = max(widest, width(lines[to].Cells[column]))
			}
			for _, l := range lines[from:to] {
				l.Columns[column+1] = l.Columns[column] + widest + columnGap
				more = true
			}
			from = max(to, from+1)
		}
	}
}

// Symbol returns the symbol of a state.
func (s State) Symbol() string {
	switch s {
	case StateCompleted:
		return "☑"
	case StateInProgress:
		return "◐"
	}
	return "☐"
}

// Status returns the exit code and duration of a command that ran.
func (s Shell) Status() string {
	if !s.HasRun {
		return ""
	}
	status := fmt.Sprintf("exit=%d duration=%dms", s.ExitCode, s.DurationMs)
	if s.Truncated {
		status += " (truncated)"
	}
	return status
}

// Output returns the output of a command that ran. say translates coder's own words.
func (s Shell) Output(say func(string) string) string {
	switch {
	case !s.HasRun:
		return ""
	case s.UsedTerminal:
		return say("(its output went to the terminal and was not captured)")
	case s.Stdout == "" && s.Stderr == "":
		return "(no output)"
	case s.Stderr == "":
		return "stdout:\n" + strings.TrimRight(s.Stdout, "\n")
	case s.Stdout == "":
		return "stderr:\n" + strings.TrimRight(s.Stderr, "\n")
	}
	return "stdout:\n" + strings.TrimRight(s.Stdout, "\n") + "\nstderr:\n" + strings.TrimRight(s.Stderr, "\n")
}

// Truncate returns s with at most the given number of lines of each output, and in Ends the last lines of
// each output that was cut.
func (s Shell) Truncate(lines int) Shell {
	cut := func(from, text, mark string) string {
		all := strings.Split(strings.TrimRight(text, "\n"), "\n")
		if len(all) <= lines {
			return text
		}
		of, last := len(all), all
		if s.Truncated { // the lines are incomplete: the middle is missing, although the marker comes last
			of = 0
			if n := len(all) - 1; all[n] == "[output truncated]" {
				last = all[:n]
			}
		}
		s.Tails = append(s.Tails, OutputTail{from, of, strings.Join(last[max(lines, len(last)-maxTailLines):], "\n")})
		return strings.Join(append(all[:lines:lines], mark), "\n")
	}
	s.Stdout = cut("stdout", s.Stdout, "...[output truncated for display]")
	s.Stderr = cut("stderr", s.Stderr, "...[error output truncated for display]")
	return s
}

// maxTailLines is the number of lines in an [OutputTail].
const maxTailLines = 5

// UniqueName returns a name that is not taken, with a number appended where needed, counted from "from":
// explore, explore 2.
func UniqueName(name string, from int, taken func(string) bool) string {
	shown := name
	for n := from; name != ""; n++ {
		if shown = name; n > 1 {
			shown = fmt.Sprintf("%s %d", name, n)
		}
		if !taken(shown) {
			break
		}
	}
	return shown
}
