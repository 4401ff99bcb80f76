package slash

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/record/undo"
	"coder/internal/report/provenance"
	"coder/internal/tool/git"
)

// Provenance is the origin of a file's lines.
type Provenance struct {
	Name         string
	Lines        []provenance.Line
	Explanations map[*provenance.Change]*provenance.Explanation
	Commits      []git.LineBlame // by line, if git was asked and knows
	GitErr       error           // why git could not be asked
	Binary       bool            // not a text file: shown as one line
	Unreadable   []string        // unreadable records that may contain more
}

// CommittedBefore reports whether git had line i, counted from 0, before a time.
func (p *Provenance) CommittedBefore(i int, than time.Time) bool {
	commit := p.blameLine(i)
	return commit.Commit != "" && commit.Time.Before(than.Truncate(time.Second))
}

// SetCandidates attributes lines of unknown origin to a call that may have written them, among the calls of
// unknown outcome; modified is the file's last change.
func (p *Provenance) SetCandidates(unknown []*provenance.Change, modified time.Time) {
	for i := range p.Lines {
		l := &p.Lines[i]
		l.SetCandidate(unknown)
		if c := l.Candidate; c != nil && (l.FoundAt.IsZero() && modified.Before(c.Time.Truncate(time.Second)) ||
			p.CommittedBefore(i, c.Time)) {
			l.Candidate = nil // the line existed before
		}
	}
}

// maxExplained is the most calls explained for one file.
const maxExplained = 10

// Why shows the prompt, call and approval behind a line that an agent wrote. trace reads the origin of a
// file's lines.
func Why(trace func(ctx context.Context, file string, line int) (*Provenance, error)) Command {
	return Command{
		Name: "why", IsReadOnly: true, Args: "FILE[:LINE]",
		Help: "show which prompt, call and approval a file or line comes from",
		Run: func(ctx context.Context, c call) (outcome, error) {
			if c.Args == "" {
				return usageError("/why needs a file, and can take a line: /why FILE:LINE")
			}
			file, line, err := SplitLine(c.Args)
			if err != nil {
				return usageError("%v", err)
			}
			p, err := trace(ctx, file, line)
			if err != nil {
				return usageError("%v", err)
			}
			blocks, err := p.Explain(line)
			if err != nil {
				return usageError("%v", err)
			}
			return show(blocks...)
		},
	}
}

// SplitLine parses FILE:LINE; the line is 0 if absent.
func SplitLine(arg string) (file string, line int, err error) {
	i := strings.LastIndexByte(arg, ':')
	n, wrong := strconv.Atoi(arg[i+1:])
	switch {
	case i <= 0 || wrong != nil:
		return arg, 0, nil
	case n < 1:
		return "", 0, message.Errorf("%s has no line %d: lines begin at 1", arg[:i], n)
	}
	return arg[:i], n, nil
}

// Explain shows the origin of a line, or of all lines if it is 0.
func (p *Provenance) Explain(line int) ([]display.Block, error) {
	switch {
	case p.Binary:
		return []display.Block{display.Text("not a text file; shown as a whole"), p.explainLine(1)}, nil
	case line > len(p.Lines):
		return nil, message.Errorf(display.Plural(len(p.Lines), "%s has %d line", "%s has %d lines"), p.Name,
			len(p.Lines))
	case line > 0:
		return []display.Block{display.Code{Source: sanitize.Text(strings.TrimRight(p.Lines[line-1].Text, "\r\n"))},
			p.explainLine(line)}, nil
	case len(p.Lines) == 0:
		return []display.Block{display.Text("the file has no lines")}, nil
	}
	t := display.Table{Header: display.TextCells("lines", "from", "time", "what")}
	var told []*provenance.Change
	for from := 0; from < len(p.Lines); {
		to := from + 1
		for to < len(p.Lines) && p.Lines[to].Origin == p.Lines[from].Origin && p.blameLine(to) == p.blameLine(from) {
			to++
		}
		lines := strconv.Itoa(from + 1)
		if to > from+1 {
			lines += "-" + strconv.Itoa(to)
		}
		o := p.Lines[from].Origin
		t.Rows = append(t.Rows, append(display.DataCells(lines), p.originRow(o, p.blameLine(from))...))
		if o.FromCall() && !slices.Contains(told, o.Change) {
			told = append(told, o.Change)
		}
		from = to
	}
	blocks := []display.Block{t}
	if unread := p.unreadableRows(); len(unread) > 0 {
		blocks = append(blocks, display.Text(""), display.Table{Rows: unread})
	}
	for _, c := range told[:min(len(told), maxExplained)] {
		blocks = append(blocks, display.Text(""), p.explainCall(provenance.Origin{Change: c}))
	}
	if more := len(told) - maxExplained; more > 0 {
		blocks = append(blocks, display.Text(fmt.Sprintf(display.Plural(more, "and %d more call; FILE:LINE shows it",
			"and %d more calls; FILE:LINE shows one"), more)))
	}
	return blocks, nil
}

// blameLine returns git's blame for a line, counted from 0.
func (p *Provenance) blameLine(i int) git.LineBlame {
	if p.Lines[i].FromCall() || i >= len(p.Commits) {
		return git.LineBlame{}
	}
	return p.Commits[i]
}

// originRow summarizes an origin: who, when, what.
func (p *Provenance) originRow(o provenance.Origin, commit git.LineBlame) []display.Cell {
	switch {
	case o.FromCall():
		what := o.Change.Tool
		if s := p.Explanations[o.Change]; s != nil && s.Prompt.Text != "" {
			what += ": " + orchestrator.Title(s.Prompt.Text)
		}
		return display.DataCells(fmt.Sprintf("%s:%d", path.Join(o.Change.Place, o.Change.Session), o.Change.Seq),
			formatTime(o.Change.Time), sanitize.Line(what, 200))
	case o.Candidate != nil:
		return slices.Concat(display.TextCells(fmt.Sprintf("perhaps %s:%d", o.Candidate.Session, o.Candidate.Seq)),
			display.DataCells(formatTime(o.Candidate.Time)), display.TextCells("a call with unknown outcome"))
	case commit.Commit != "":
		return display.DataCells("git "+commit.Commit[:min(len(commit.Commit), 8)], formatTime(commit.Time),
			commit.Author+": "+commit.Summary)
	case o.OtherWriters == event.DoubtOther:
		return slices.Concat(display.TextCells("another program"), display.DataCells(formatTime(o.Change.Time)),
			display.TextCells(fmt.Sprintf("while %s:%d ran", o.Change.Session, o.Change.Seq)))
	case len(p.Unreadable) > 0:
		return display.TextCells("not known", "", "not all records can be read")
	case !o.External && slices.ContainsFunc(p.Lines, func(l provenance.Line) bool { return l.Change != nil }):
		return display.TextCells("before any session", "", p.uncommittedText())
	}
	return display.TextCells("not by a session", "", p.uncommittedText())
}

// uncommittedText describes a line that is in no commit.
func (p *Provenance) uncommittedText() string {
	if p.GitErr != nil {
		return ""
	}
	return "not committed yet"
}

// Label summarizes the origin of a line, counted from 0.
func (p *Provenance) Label(i int) display.Cell {
	o, commit := p.Lines[i].Origin, p.blameLine(i)
	row := p.originRow(o, commit)
	switch {
	case o.FromCall():
		return display.Cell{Text: strings.Join([]string{row[0].Text, row[1].Text, o.Change.Tool}, " ")}
	case commit.Commit != "" && o.Candidate == nil:
		return display.Cell{Text: strings.Join([]string{row[0].Text, row[1].Text, commit.Author}, " ")}
	}
	return row[0]
}

func formatTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// explainLine explains one line.
func (p *Provenance) explainLine(line int) display.Table {
	o, commit := p.Lines[line-1].Origin, p.blameLine(line-1)
	if o.FromCall() {
		return p.explainCall(o)
	}
	said := "no session wrote this line"
	switch c := o.Candidate; {
	case c != nil:
		said = fmt.Sprintf("author unknown: %s, record %d of session %s, may have written it; its outcome is unknown", c.Tool,
			c.Seq, c.Session)
	case o.OtherWriters == event.DoubtOther:
		said = fmt.Sprintf("by another program, while %s ran, record %d of session %s", o.Change.Tool, o.Change.Seq,
			o.Change.Session)
	case len(p.Unreadable) > 0:
		said = "unknown whether a session wrote this line: not all records can be read"
	case o.External && o.Change != nil:
		said = fmt.Sprintf("no session wrote this line: someone else added it after record %d of session %s", o.Change.Done,
			o.Change.Session)
	}
	t := display.Table{Rows: append([][]display.Cell{display.TextCells("written", said)}, p.unreadableRows()...)}
	switch {
	case commit.Commit != "":
		t.Rows = append(t.Rows, factRow("git blame", fmt.Sprintf("%.12s %s, %s: %s", commit.Commit, formatTime(commit.Time),
			commit.Author, commit.Summary)))
	case p.GitErr != nil:
		t.Rows = append(t.Rows, display.TextCells("git blame", p.GitErr.Error()))
	default:
		t.Rows = append(t.Rows, display.TextCells("git blame", "the line is not committed yet"))
	}
	return t
}

// unreadableRows lists unreadable records that may contain more.
func (p *Provenance) unreadableRows() (rows [][]display.Cell) {
	for _, what := range p.Unreadable {
		rows = append(rows, display.TextCells("unread", what))
	}
	return rows
}

func factRow(name, text string) []display.Cell {
	return []display.Cell{{Text: name, Words: true}, {Text: sanitize.Line(text, 400)}}
}

// explainCall explains how the call that wrote a line came about.
func (p *Provenance) explainCall(o provenance.Origin) display.Table {
	c, s := o.Change, p.Explanations[o.Change]
	var t display.Table
	add := func(cells []display.Cell) { t.Rows = append(t.Rows, cells) }
	if s == nil {
		add(display.TextCells("written", fmt.Sprintf("by %s, record %d of session %s, %s", c.Tool, c.Seq, c.Session,
			formatTime(c.Time))))
		return t
	}
	add(display.TextCells("written", fmt.Sprintf("by %s, record %d of session %s, %s",
		cmp.Or(sanitize.Line(s.Agent, 60), "main"), c.Seq, c.Session, formatTime(c.Time))))
	if c.Place != "" {
		add(factRow("stored in", c.Place))
	}
	switch o.OtherWriters {
	case event.DoubtBoth:
		add(display.TextCells("", "or by another program, which changed the file while the call ran"))
	case event.DoubtUnseen:
		add(display.TextCells("", "or by another program: coder could not watch the command"))
	}
	if o.Uncertain {
		add(display.TextCells("", "or by someone else around then: the content in between was not saved"))
	}
	if s.Prompt.Seq > 0 {
		add(factRow("prompt", fmt.Sprintf("#%d %s", s.Prompt.Seq, s.Prompt.Text)))
	}
	if s.Message.Seq > 0 {
		add(factRow("message", strings.TrimSpace(fmt.Sprintf("#%d %s %s", s.Message.Seq, s.Message.Model, s.Message.Text))))
	}
	input := string(s.Input)
	if undo.Reverts(c.Tool) { // it lists the states of all files
		input = ""
	}
	add(factRow("call", strings.TrimSpace(fmt.Sprintf("#%d %s %s", c.Seq, c.Tool, input))))
	decided := append([]string{fmt.Sprintf("%s (%s)", s.Verdict, s.DecidedBy)}, s.Reasons...)
	add(display.TextCells("decided", sanitize.Line(strings.Join(decided, "; "), 400)))
	if a := s.Answer; a != nil {
		add(display.TextCells("answer", sanitize.Line(fmt.Sprintf("#%d %s", a.Seq, a.Option), 400)))
		if a.Comment != "" {
			add(factRow("", a.Comment))
		}
	}
	if s.Check != nil {
		add(display.TextCells("check", sanitize.Line(fmt.Sprintf("#%d %s: exit %d", s.Check.Seq, s.Check.Command,
			s.Check.Exit), 400)))
	} else {
		add(display.TextCells("check", "none since"))
	}
	if !s.Signed {
		add(display.TextCells("record", "not signed by this machine: anyone who can write here may have written it"))
	}
	return t
}
