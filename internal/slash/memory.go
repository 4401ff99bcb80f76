package slash

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/authored/notes"
	"coder/internal/core/display"
	"coder/internal/record/undo"
)

// Memory is what the user wants sessions to remember.
type Memory interface {
	Entries() ([]notes.Entry, []frontmatter.Warning)
	Remember(ctx context.Context, c undo.Request, text string, own bool) (display.Diff, error)
	Forget(ctx context.Context, c undo.Request, e notes.Entry) (display.Diff, error)
	Edit(ctx context.Context, e notes.Entry) error
}

// allProjectsFlag puts an entry in the user's memory for all projects.
const allProjectsFlag = "--user"

// Remember saves an entry in the memory.
func Remember(m Memory) Command {
	return Command{
		Name: "remember", Args: "[--user] TEXT", Help: "save a note for later sessions here, or in all projects",
		Run: func(ctx context.Context, c call) (outcome, error) {
			text, own := strings.CutPrefix(c.Args+" ", allProjectsFlag+" ")
			if text = strings.TrimSpace(text); text == "" {
				return usageError("/remember needs a text: /remember [--user] TEXT")
			}
			diff, err := m.Remember(ctx, undoCall(c), text, own)
			if err != nil {
				return usageError("%v", err)
			}
			if own {
				return show(display.Text("Saved for all your projects. /undo does not change this."), diff)
			}
			return show(display.Text("Saved."), diff)
		},
	}
}

// undoCall returns the record of a memory change.
func undoCall(c call) undo.Request {
	return undo.Request{NewID: func() string { return c.NewID("memory") }, Emit: c.Emit}
}

// MemoryCommand lists the memory, and shows, edits or removes an entry.
func MemoryCommand(m Memory) Command {
	return Command{
		Name: "memory", ShowsOnly: true, Args: "[NAME|edit NAME|forget NAME]",
		Help: "list what sessions remember, or show, edit or forget it",
		Run: func(ctx context.Context, c call) (outcome, error) {
			entries, bad := m.Entries()
			verb, name, found := strings.Cut(strings.TrimSpace(c.Args), " ")
			if verb == "" {
				return show(listMemory(entries, bad)...)
			}
			if !found {
				verb, name = "show", verb
			}
			i := slices.IndexFunc(entries, func(e notes.Entry) bool { return e.Name == strings.TrimSpace(name) })
			if i < 0 {
				return usageError("unknown entry %q; /memory lists the entries", name)
			}
			switch verb {
			case "show":
				return show(display.Text(entries[i].Path), display.Text(entries[i].Text))
			case "edit":
				if err := m.Edit(ctx, entries[i]); err != nil {
					return usageError("%v", err)
				}
				return showText("edited: " + entries[i].Path)
			case "forget":
				diff, err := m.Forget(ctx, undoCall(c), entries[i])
				if err != nil {
					return usageError("%v", err)
				}
				if entries[i].FromUser {
					return show(display.Text("Removed for all your projects. /undo does not change this."), diff)
				}
				return show(display.Text("Removed."), diff)
			}
			return usageError("/memory takes edit NAME and forget NAME, not %q", c.Args)
		},
	}
}

func listMemory(entries []notes.Entry, bad []frontmatter.Warning) (blocks []display.Block) {
	t := display.Table{Header: display.TextCells("name", "says", "file")}
	for _, e := range entries {
		line, more := e.Summary()
		if more {
			line += fmt.Sprintf(" (+%d)", strings.Count(e.Text, "\n"))
		}
		t.Rows = append(t.Rows, display.DataCells(e.Name, line, e.Path))
	}
	if len(entries) == 0 {
		blocks = append(blocks, display.Text("no memory; /remember TEXT saves a note for later sessions"))
	} else {
		blocks = append(blocks, t)
	}
	for _, w := range bad {
		blocks = append(blocks, display.Text(w.String()))
	}
	return blocks
}
