package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/policy/mode"
	"coder/internal/report/asof"
	"coder/internal/report/export"
	"coder/internal/report/provenance"
	"coder/internal/slash"
)

// runShow shows a session as of one of its records, or the content of a file then.
func (inv *invocation) runShow(ctx context.Context, a *app.Workspace) error {
	id, err := a.Store().CheckSession(ctx, inv.flags.args[0])
	if err != nil {
		return err
	}
	return a.ReadStates(ctx, id, []uint64{uint64(inv.flags.atRecord)},
		func(states []app.PastState, kept provenance.ContentReader) error {
			if inv.flags.file != "" {
				return inv.printFile(ctx, states[0].State, kept)
			}
			book, err := a.BuildLedger(ctx, id, states[0].Seq)
			if err != nil {
				return err
			}
			if err := inv.printBlocks(inv.stateBlocks(states[0], book.WindowTokens(),
				slash.Sources(book, id)...)...); err != nil {
				return err
			}
			if err := inv.print(""); err != nil {
				return err
			}
			told, err := a.ReadTranscript(ctx, id, states[0])
			if err != nil {
				return err
			}
			return export.Markdown(inv.Stdout, told, inv.exportLanguage())
		})
}

// runDiff shows how a session's files changed between two of its records.
func (inv *invocation) runDiff(ctx context.Context, a *app.Workspace) error {
	from, to, ok := strings.Cut(inv.flags.args[1], "..")
	first, err1 := strconv.ParseUint(cmp.Or(from, "0"), 10, 32)
	last, err2 := strconv.ParseUint(cmp.Or(to, "0"), 10, 32)
	if !ok || err1 != nil || err2 != nil || to != "" && first > last {
		return usageErrorf("coder diff needs two records of the session as A..B, not %q", inv.flags.args[1])
	}
	id, err := a.Store().CheckSession(ctx, inv.flags.args[0])
	if err != nil || to != "" && last == 0 { // nothing has happened yet
		return err
	}
	text, err := a.ReadDiff(ctx, id, max(first, 1), last, func(path string) string {
		return inv.printer.T("%s changed, but its content was not saved", path) + "\n"
	})
	if err == nil {
		_, err = fmt.Fprint(inv.Stdout, text)
	}
	return err
}

// printFile prints the content of a file in the session.
func (inv *invocation) printFile(ctx context.Context, s asof.State, kept provenance.ContentReader) error {
	name := filepath.ToSlash(filepath.Clean(inv.flags.file))
	find := func(name string) int {
		is := func(f asof.File) bool { return f.Path == name || event.DisplayName(f.Path) == name }
		name = filepath.ToSlash(name)
		return slices.IndexFunc(s.Files, is)
	}
	i := find(name)
	if within, err := filepath.Rel(inv.settings.Root, inv.resolveArg(name)); i < 0 &&
		(inv.callDir != "" || filepath.IsAbs(inv.flags.file)) && err == nil {
		i = find(within) // relative to the current folder
	}
	if i < 0 {
		return inputErrorf("the session had not changed %s by record %d", name, s.Seq)
	}
	text, err := s.Files[i].Content(ctx, kept)
	switch {
	case err != nil:
		return inputErrorf("the content of %s was not saved: %v", name, err)
	case text == nil:
		return inputErrorf("%s did not exist at record %d", name, s.Seq)
	}
	_, err = io.WriteString(inv.Stdout, inv.sanitizeText(string(text)))
	return err
}

// stateBlocks shows the session's state, and by source what filled the window, if known.
func (inv *invocation) stateBlocks(s app.PastState, used int, sources ...display.Block) []display.Block {
	blocks := []display.Block{
		display.Table{Rows: [][]display.Cell{
			slash.StatusRow("record", fmt.Sprintf("%d, %s", s.Seq, s.Time.Local().Format("2006-01-02 15:04:05"))),
			slash.StatusRow("mode", cmp.Or(strings.TrimSpace(s.Mode+" "+strings.TrimPrefix(s.Preset, s.Mode)), mode.Build)),
		}},
	}
	if todos := s.Conversation.Todos(); len(todos) > 0 {
		var list display.Checklist
		for _, t := range todos {
			list = append(list, display.Check{State: display.State(t.Status), Text: singleLine(t.Content)})
		}
		blocks = append(blocks, display.Text("\ntodos"), list)
	}
	if len(s.Open) > 0 {
		var t display.Table
		for _, q := range s.Open {
			t.Rows = append(t.Rows, display.DataCells(q.ID, singleLine(q.Display.Title)))
		}
		blocks = append(blocks, display.Text("\nopen questions"), t)
	}
	blocks = append(blocks, display.Text("\nwhat the model sees"), slash.WindowTable(s.Conversation, s.ToolTokens, used))
	blocks = append(blocks, sources...)
	if len(s.Files) > 0 {
		t := display.Table{Header: display.TextCells("file", "state", "record", "bytes")}
		for _, f := range s.Files {
			t.Rows = append(t.Rows, slices.Concat(display.DataCells(singleLine(event.DisplayName(f.Path))),
				display.TextCells(fileStateText(f)), display.DataCells(strconv.FormatUint(f.LastChange.Done, 10),
					strconv.FormatInt(f.After.Size, 10))))
		}
		blocks = append(blocks, display.Text(""), t)
	}
	return blocks
}

// fileStateText describes the session's change to a file in a word.
func fileStateText(f asof.File) string {
	gone := func(s event.FileState) bool { return s.Hash == "" && !s.ContentLost }
	switch {
	case gone(f.Before) && gone(f.After):
		return "created and removed"
	case gone(f.Before):
		return "new"
	case gone(f.After):
		return "removed"
	case f.Before == f.After:
		return "not changed"
	}
	return "changed"
}
