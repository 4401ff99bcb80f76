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
	"coder/internal/core/sanitize"
	"coder/internal/record/undo"
	"coder/internal/report/provenance"
	"coder/internal/tool/git"
)

// Provenance is the origin of a file's lines.
type Provenance struct {
	Name    string
	Lines   []provenance.Line
	Stories map[*provenance.Change]*provenance.Story
	Commits []git.Blamed // by line, if git was asked and knows
	NoGit   error        // why git could not be asked
	Binary  bool         // not a text file: shown as one line
	Unread  []string     // unreadable records that may contain more
}

// Older reports whether git had line i, counted from 0, before a time.
func (p *Provenance) Older(i int, than time.Time) bool {
	commit := p.commit(i)
	return commit.Commit != "" && commit.Time.Before(than.Truncate(time.Second))
}

// Doubt attributes lines of unknown origin to a call that may have written them, among the calls of
// unknown outcome; modified is the file's last change.
func (p *Provenance) Doubt(unknown []*provenance.Change, modified time.Time) {
	for i := range p.Lines {
		l := &p.Lines[i]
		l.Doubt(unknown)
		if c := l.Perhaps; c != nil && (l.Until.IsZero() && modified.Before(c.Time.Truncate(time.Second)) || p.Older(i, c.Time)) {
			l.Perhaps = nil // the line existed before
		}
	}
}

// storiesShown is the most calls explained for one file.
const storiesShown = 10

// Why shows the prompt, call and approval behind a line that an agent wrote. trace reads the origin of a
// file's lines.
func Why(trace func(ctx context.Context, file string, line int) (*Provenance, error)) Command {
	return Command{
		Name: "why", Reads: true, Args: "FILE[:LINE]", Help: "show which prompt, call and approval a file or line comes from",
		Run: func(ctx context.Context, c call) (outcome, error) {
			if c.Args == "" {
				return wrong("/why needs a file, and can take a line: /why FILE:LINE")
			}
			file, line, err := SplitLine(c.Args)
			if err != nil {
				return wrong("%v", err)
			}
			p, err := trace(ctx, file, line)
			if err != nil {
				return wrong("%v", err)
			}
			blocks, err := p.Explain(line)
			if err != nil {
				return wrong("%v", err)
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
		return "", 0, fmt.Errorf("%s has no line %d: lines begin at 1", arg[:i], n)
	}
	return arg[:i], n, nil
}

// Explain shows the origin of a line, or of all lines if it is 0.
func (p *Provenance) Explain(line int) ([]display.Block, error) {
	switch {
	case p.Binary:
		return []display.Block{display.Text("not a text file; shown as a whole"), p.explainLine(1)}, nil
	case line > len(p.Lines):
		return nil, fmt.Errorf(display.Form(len(p.Lines), "%s has %d line", "%s has %d lines"), p.Name, len(p.Lines))
	case line > 0:
		return []display.Block{display.Code{Source: sanitize.Text(strings.TrimRight(p.Lines[line-1].Text, "\r\n"))}, p.explainLine(line)}, nil
	case len(p.Lines) == 0:
		return []display.Block{display.Text("the file has no lines")}, nil
	}
	t := display.Table{Head: display.Words("lines", "from", "time", "what")}
	var told []*provenance.Change
	for from := 0; from < len(p.Lines); {
		to := from + 1
		for to < len(p.Lines) && p.Lines[to].Origin == p.Lines[from].Origin && p.commit(to) == p.commit(from) {
			to++
		}
		lines := strconv.Itoa(from + 1)
		if to > from+1 {
			lines += "-" + strconv.Itoa(to)
		}
		o := p.Lines[from].Origin
		t.Rows = append(t.Rows, append(display.Data(lines), p.row(o, p.commit(from))...))
		if o.BySession() && !slices.Contains(told, o.By) {
			told = append(told, o.By)
		}
		from = to
	}
	blocks := []display.Block{t}
	if unread := p.unread(); len(unread) > 0 {
		blocks = append(blocks, display.Text(""), display.Table{Rows: unread})
	}
	for _, c := range told[:min(len(told), storiesShown)] {
		blocks = append(blocks, display.Text(""), p.story(provenance.Origin{By: c}))
	}
	if more := len(told) - storiesShown; more > 0 {
		blocks = append(blocks, display.Text(fmt.Sprintf(display.Form(more, "and %d more call; FILE:LINE shows it", "and %d more calls; FILE:LINE shows one"), more)))
	}
	return blocks, nil
}

// commit returns git's blame for a line, counted from 0.
func (p *Provenance) commit(i int) git.Blamed {
	if p.Lines[i].BySession() || i >= len(p.Commits) {
		return git.Blamed{}
	}
	return p.Commits[i]
}

// row summarizes an origin: who, when, what.
func (p *Provenance) row(o provenance.Origin, commit git.Blamed) []display.Cell {
	switch {
	case o.BySession():
		what := o.By.Tool
		if s := p.Stories[o.By]; s != nil && s.Prompt.Text != "" {
			what += ": " + orchestrator.Title(s.Prompt.Text)
		}
		return display.Data(fmt.Sprintf("%s:%d", path.Join(o.By.Place, o.By.Session), o.By.Seq), when(o.By.Time), sanitize.Line(what, 200))
	case o.Perhaps != nil:
		return slices.Concat(display.Words(fmt.Sprintf("perhaps %s:%d", o.Perhaps.Session, o.Perhaps.Seq)), display.Data(when(o.Perhaps.Time)), display.Words("a call with unknown outcome"))
	case commit.Commit != "":
		return display.Data("git "+commit.Commit[:min(len(commit.Commit), 8)], when(commit.Time), commit.Author+": "+commit.Summary)
	case o.Others == event.DoubtOther:
		return slices.Concat(display.Words("another program"), display.Data(when(o.By.Time)), display.Words(fmt.Sprintf("while %s:%d ran", o.By.Session, o.By.Seq)))
	case len(p.Unread) > 0:
		return display.Words("not known", "", "not all records can be read")
	case !o.Outside && slices.ContainsFunc(p.Lines, func(l provenance.Line) bool { return l.By != nil }):
		return display.Words("before any session", "", p.uncommitted())
	}
	return display.Words("not by a session", "", p.uncommitted())
}

// uncommitted describes a line that is in no commit.
func (p *Provenance) uncommitted() string {
	if p.NoGit != nil {
		return ""
	}
	return "not committed yet"
}

// Label summarizes the origin of a line, counted from 0.
func (p *Provenance) Label(i int) display.Cell {
	o, commit := p.Lines[i].Origin, p.commit(i)
	row := p.row(o, commit)
	switch {
	case o.BySession():
		return display.Cell{Text: strings.Join([]string{row[0].Text, row[1].Text, o.By.Tool}, " ")}
	case commit.Commit != "" && o.Perhaps == nil:
		return display.Cell{Text: strings.Join([]string{row[0].Text, row[1].Text, commit.Author}, " ")}
	}
	return row[0]
}

func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// explainLine explains one line.
func (p *Provenance) explainLine(line int) display.Table {
	o, commit := p.Lines[line-1].Origin, p.commit(line-1)
	if o.BySession() {
		return p.story(o)
	}
	said := "no session wrote this line"
	switch c := o.Perhaps; {
	case c != nil:
		said = fmt.Sprintf("author unknown: %s, record %d of session %s, may have written it; its outcome is unknown", c.Tool, c.Seq, c.Session)
	case o.Others == event.DoubtOther:
		said = fmt.Sprintf("by another program, while %s ran, record %d of session %s", o.By.Tool, o.By.Seq, o.By.Session)
	case len(p.Unread) > 0:
		said = "unknown whether a session wrote this line: not all records can be read"
	case o.Outside && o.By != nil:
		said = fmt.Sprintf("no session wrote this line: someone else added it after record %d of session %s", o.By.Done, o.By.Session)
	}
	t := display.Table{Rows: append([][]display.Cell{display.Words("written", said)}, p.unread()...)}
	switch {
	case commit.Commit != "":
		t.Rows = append(t.Rows, fact("git blame", fmt.Sprintf("%.12s %s, %s: %s", commit.Commit, when(commit.Time), commit.Author, commit.Summary)))
	case p.NoGit != nil:
		t.Rows = append(t.Rows, display.Words("git blame", p.NoGit.Error()))
	default:
		t.Rows = append(t.Rows, display.Words("git blame", "the line is not committed yet"))
	}
	return t
}

// unread lists unreadable records that may contain more.
func (p *Provenance) unread() (rows [][]display.Cell) {
	for _, what := range p.Unread {
		rows = append(rows, display.Words("unread", what))
	}
	return rows
}

func fact(name, text string) []display.Cell {
	return []display.Cell{{Text: name, Words: true}, {Text: sanitize.Line(text, 400)}}
}

// story explains how the call that wrote a line came about.
func (p *Provenance) story(o provenance.Origin) display.Table {
	c, s := o.By, p.Stories[o.By]
	var t display.Table
	add := func(cells []display.Cell) { t.Rows = append(t.Rows, cells) }
	if s == nil {
		add(display.Words("written", fmt.Sprintf("by %s, record %d of session %s, %s", c.Tool, c.Seq, c.Session, when(c.Time))))
		return t
	}
	add(display.Words("written", fmt.Sprintf("by %s, record %d of session %s, %s", cmp.Or(sanitize.Line(s.Agent, 60), "main"), c.Seq, c.Session, when(c.Time))))
	if c.Place != "" {
		add(fact("stored in", c.Place))
	}
	switch o.Others {
	case event.DoubtBoth:
		add(display.Words("", "or by another program, which changed the file while the call ran"))
	case event.DoubtUnseen:
		add(display.Words("", "or by another program: coder could not watch the command"))
	}
	if o.Unsure {
		add(display.Words("", "or by someone else around then: the content in between was not saved"))
	}
	if s.Prompt.Seq > 0 {
		add(fact("prompt", fmt.Sprintf("#%d %s", s.Prompt.Seq, s.Prompt.Text)))
	}
	if s.Message.Seq > 0 {
		add(fact("message", strings.TrimSpace(fmt.Sprintf("#%d %s %s", s.Message.Seq, s.Message.Model, s.Message.Text))))
	}
	input := string(s.Input)
	if undo.Reverts(c.Tool) { // it lists the states of all files
		input = ""
	}
	add(fact("call", strings.TrimSpace(fmt.Sprintf("#%d %s %s", c.Seq, c.Tool, input))))
	decided := append([]string{fmt.Sprintf("%s (%s)", s.Verdict, s.DecidedBy)}, s.Reasons...)
	add(display.Words("decided", sanitize.Line(strings.Join(decided, "; "), 400)))
	if a := s.Answer; a != nil {
		add(display.Words("answer", sanitize.Line(fmt.Sprintf("#%d %s", a.Seq, a.Option), 400)))
		if a.Comment != "" {
			add(fact("", a.Comment))
		}
	}
	if s.Check != nil {
		add(display.Words("check", sanitize.Line(fmt.Sprintf("#%d %s: exit %d", s.Check.Seq, s.Check.Command, s.Check.Exit), 400)))
	} else {
		add(display.Words("check", "none since"))
	}
	if !s.Signed {
		add(display.Words("record", "not signed by this machine: anyone who can write here may have written it"))
	}
	return t
}
