package cli

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/report/provenance"
	"coder/internal/slash"
)

// runWhy explains the origin of a file, or a line of it.
func (inv *invocation) runWhy(ctx context.Context) error {
	p, line, err := inv.readProvenance(ctx, "why")
	if err != nil {
		return err
	}
	blocks, err := p.Explain(line)
	switch {
	case err != nil:
		return inputErrorf("%v", err)
	case inv.flags.json:
		return inv.printOrigins(p, line)
	}
	return inv.printBlocks(blocks...)
}

// runBlame shows the origin of every line of a file.
func (inv *invocation) runBlame(ctx context.Context) error {
	p, _, err := inv.readProvenance(ctx, "blame")
	switch {
	case err != nil:
		return err
	case inv.flags.json:
		return inv.printOrigins(p, 0)
	}
	return inv.printBlocks(p.Blame())
}

// readProvenance reads the origin of the lines of the file that the command line names.
func (inv *invocation) readProvenance(ctx context.Context, command string) (*slash.Provenance, int, error) {
	if len(inv.flags.args) != 1 {
		return nil, 0, usageErrorf("coder %s needs one file, optionally with a line: FILE:LINE", command)
	}
	file, line, err := slash.SplitLine(inv.flags.args[0])
	if err != nil {
		return nil, 0, usageErrorf("%v", err)
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return nil, 0, err
	}
	if inv.callDir != "" {
		file = inv.resolveArg(file)
	}
	if command == "blame" {
		line = 0
	}
	p, err := a.TraceProvenance(ctx, file, line)
	return p, line, err
}

// originRow is a line's origin in JSON output.
type originRow struct {
	Line    int    `json:"line"`
	Text    string `json:"text"`
	Source  string `json:"by"` // session, outside, before, or unknown where not all records can be read
	Session string `json:"session,omitempty"`
	Place   string `json:"place,omitempty"` // the session's folder, if it is another
	Record  uint64 `json:"record,omitempty"`
	Unsure  bool   `json:"unsure,omitempty"`
	// the call of unknown outcome that may have written it, as SESSION:RECORD
	MaybeCall string                  `json:"perhaps,omitempty"`
	Commit    string                  `json:"commit,omitempty"`
	Story     *provenance.Explanation `json:"story,omitempty"`
}

// printOrigins prints the origin of a line, or of all lines if it is 0.
func (inv *invocation) printOrigins(p *slash.Provenance, line int) error {
	rows := []originRow{}
	for i, l := range p.Lines {
		if p.Binary {
			line, l.Text = 1, ""
		}
		if line > 0 && i+1 != line {
			continue
		}
		row := originRow{Line: i + 1, Text: strings.TrimRight(l.Text, "\r\n"), Source: "before", Unsure: l.Uncertain}
		switch {
		case l.FromCall():
			row.Source, row.Session, row.Record, row.Place = "session", l.Change.Session, l.Change.Seq, l.Change.Place
			if line > 0 {
				row.Story = p.Explanations[l.Change]
			}
		case len(p.Unreadable) > 0:
			row.Source, row.Unsure = "unknown", true
		case l.External:
			row.Source = "outside"
		}
		if c := l.Candidate; c != nil {
			row.MaybeCall = fmt.Sprintf("%s:%d", c.Session, c.Seq)
		}
		if !l.FromCall() && i < len(p.Commits) {
			row.Commit = p.Commits[i].Commit
		}
		rows = append(rows, row)
	}
	return inv.printJSON(rows)
}
