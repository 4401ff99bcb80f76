package slash

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/report/fulltext"
)

// Blame shows the session or commit that each line of a file comes from.
func Blame(trace func(ctx context.Context, file string, line int) (*Provenance, error)) Command {
	return Command{
		Name: "blame", IsReadOnly: true, Args: "FILE", Help: "show which session or commit each line of a file comes from",
		Run: func(ctx context.Context, c call) (outcome, error) {
			if c.Args == "" {
				return usageError("/blame needs a file: /blame FILE")
			}
			file, _, err := SplitLine(c.Args)
			if err != nil {
				return usageError("%v", err)
			}
			p, err := trace(ctx, file, 0)
			if err != nil {
				return usageError("%v", err)
			}
			return show(p.Blame())
		},
	}
}

// Blame returns every line with its origin.
func (p *Provenance) Blame() display.Block {
	var t display.Table
	width := len(strconv.Itoa(len(p.Lines)))
	for i, l := range p.Lines {
		row := []display.Cell{p.Label(i), {Text: fmt.Sprintf("%*d %s", width, i+1,
			sanitize.Text(strings.TrimRight(l.Text, "\r\n")))}}
		if p.Binary {
			row = []display.Cell{row[0], {Text: "1"}, {Text: "not a text file; shown as a whole", Words: true}}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// maxHits is the most sessions that a search shows.
const maxHits = 30

// Search searches all sessions of all projects.
func Search(find func(ctx context.Context, words []string) ([]fulltext.Result, error)) Command {
	return Command{
		Name: "search", IsReadOnly: true, Args: "WORDS", Help: "search all sessions of all projects",
		Run: func(ctx context.Context, c call) (outcome, error) {
			words := fulltext.SplitQuery(c.Args)
			if len(words) == 0 {
				return usageError("/search needs words to search for")
			}
			all, err := find(ctx, words)
			if err != nil {
				return outcome{}, err
			}
			return show(HitBlocks(all, words)...)
		},
	}
}

// HitBlocks returns the sessions that match a search.
func HitBlocks(all []fulltext.Result, words []string) (blocks []display.Block) {
	if len(all) == 0 {
		return []display.Block{display.Text("no session contains all of these words")}
	}
	for _, f := range all[:min(len(all), maxHits)] {
		line := []string{formatTime(f.Updated), sanitize.Line(f.Project, 400), f.Session, sanitize.Line(f.Title, 400)}
		blocks = append(blocks, display.Table{Rows: [][]display.Cell{display.DataCells(line...)}})
		if f.Line != "" {
			hit := []display.Cell{{}, {Text: string(f.Kind), Words: true},
				{Text: fulltext.Highlight(sanitize.Line(f.Line, 400), words, "**", "**")}}
			blocks = append(blocks, display.Table{Rows: [][]display.Cell{hit}})
		}
	}
	if more := len(all) - maxHits; more > 0 {
		blocks = append(blocks, display.Text(fmt.Sprintf("and %d older", more)))
	}
	return blocks
}
