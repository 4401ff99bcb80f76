package slash

import (
	"context"
	"slices"
	"time"

	"coder/internal/authored/skills"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/policy/trust"
	"coder/internal/record/undo"
	"coder/internal/report/fulltext"
	"coder/internal/report/ledger"
	"coder/internal/tool/mcp"
)

// Work is what a session's commands work on.
type Work struct {
	Session string
	Root    string      // the workspace
	Own     string      // coder's folder in it
	InLines bool        // the terminal prints lines
	OwnKeys [][2]string // keys that the person bound, and what they do
	Now     func() time.Time
	NewID   func() string // of a session

	Records Records
	Files   Files
	Spent   *Ledger
	Models  Models

	Permissions func() display.Table
	Revoke      func(which string) (string, error) // nil: no grants are saved
	Servers     *mcp.Host
	Login       func(ctx context.Context, server string, show func(address string)) error
	Skills      *skills.Catalogue
	Agents      func() (items []Item, warnings []string)
	Todos       func() []event.Todo
	Jobs        func() []Job
	Copy        func(ctx context.Context, text string) (how string, err error)
	Tasks       func(context.Context) ([]Task, error)

	Settings Preferences
	Styles   Styles
	Status   func(context.Context) [][]display.Cell
	Trust    trust.Book
	Memory   Memory
	Entrusts func() (rows [][]display.Cell, give func() error, err error)
}

// Records reads the records.
type Records struct {
	Archive Archive
	Book    func(ctx context.Context, session string, until uint64) (*ledger.Book, error)
	Trace   func(ctx context.Context, file string, line int) (*Provenance, error)
	Find    func(ctx context.Context, words []string) ([]fulltext.Found, error)
}

// Files undoes, redoes and reports file changes.
type Files struct {
	Changes    *Changes
	Past       *undo.History
	Undo, Redo Revert
	Restore    func(ctx context.Context, at uint64, c undo.Call) (undo.Plan, error)
}

// All returns the commands in the order of /help.
func All(w Work) []Command {
	return slices.Concat(
		[]Command{Help(), Keys(w.InLines, w.OwnKeys), Model(w.Models), Mode()}, Modes(),
		[]Command{
			Permissions(w.Permissions, w.Revoke), Tools(), MCP(w.Servers, w.Login), Skills(w.Skills), Agents(w.Agents),
			Todos(w.Todos), Jobs(w.Jobs), Tasks(w.Tasks), Context(w.Session, w.Records.Book), Cost(w.Spent), Compact(), Copy(w.Copy),
			Diff(w.Files.Changes), Why(w.Records.Trace), Blame(w.Records.Trace), Search(w.Records.Find),
			Undo(w.Files.Undo), Redo(w.Files.Redo), Rewind(w.Files.Undo, w.Files.Redo, w.Files.Past), Restore(w.Files.Restore),
		},
		New(w.NewID),
		[]Command{
			Resume(w.Records.Archive, w.Session, w.Now), Sessions(w.Records.Archive, w.Session, w.Now), Rename(w.Records.Archive, w.Session),
			Export(w.Records.Archive, w.Session, w.Root, w.Own),
			Init(), Remember(w.Memory), MemoryOf(w.Memory), Config(w.Settings), Theme(w.Settings), OutputStyle(w.Styles), Status(w.Status), Trust(w.Trust, w.Root, w.Entrusts),
		},
		Exit(),
	)
}
