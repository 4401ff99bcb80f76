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

// Deps is what a session's commands work on.
type Deps struct {
	Session    string
	Root       string      // the workspace
	DataDir    string      // coder's folder in Root
	LineMode   bool        // the terminal prints lines
	CustomKeys [][2]string // keys that the person bound, and what they do
	Now        func() time.Time
	NewID      func() string // of a session

	Records Records
	Files   Files
	Costs   *CostTally
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

	Settings     Preferences
	Styles       Styles
	Status       func(context.Context) [][]display.Cell
	Trust        trust.Registry
	Memory       Memory
	PreviewTrust func() (rows [][]display.Cell, give func() error, err error)
}

// Records reads the records.
type Records struct {
	Archive Archive
	Ledger  func(ctx context.Context, session string, until uint64) (*ledger.Ledger, error)
	Trace   func(ctx context.Context, file string, line int) (*Provenance, error)
	Search  func(ctx context.Context, words []string) ([]fulltext.Result, error)
	ReadDiff
}

// Files undoes, redoes and reports file changes.
type Files struct {
	Changes    *Changes
	History    *undo.History
	Undo, Redo RevertFunc
	Restore    func(ctx context.Context, at uint64, c undo.Request) (undo.Plan, error)
}

// All returns the commands in the order of /help.
func All(w Deps) []Command {
	return slices.Concat(
		[]Command{Help(), Keys(w.LineMode, w.CustomKeys), Model(w.Models), Mode()}, Modes(),
		[]Command{
			Permissions(w.Permissions, w.Revoke), Tools(), MCP(w.Servers, w.Login), Skills(w.Skills), Agents(w.Agents),
			Todos(w.Todos), Jobs(w.Jobs), Tasks(w.Tasks), Context(w.Session, w.Records.Ledger), Cost(w.Costs), Compact(),
			Copy(w.Copy),
			Diff(w.Files.Changes, w.Records.ReadDiff), Why(w.Records.Trace), Blame(w.Records.Trace), Search(w.Records.Search),
			Undo(w.Files.Undo), Redo(w.Files.Redo), Rewind(w.Files.Undo, w.Files.Redo, w.Files.History),
			Restore(w.Files.Restore),
		},
		New(w.NewID),
		[]Command{
			Resume(w.Records.Archive, w.Session, w.Now), Sessions(w.Records.Archive, w.Session, w.Now),
			Rename(w.Records.Archive, w.Session),
			Export(w.Records.Archive, w.Session, w.Root, w.DataDir),
			Init(), Remember(w.Memory), MemoryCommand(w.Memory), Config(w.Settings), Theme(w.Settings), OutputStyle(w.Styles),
			Status(w.Status), Trust(w.Trust, w.Root, w.PreviewTrust),
		},
		Exit(),
	)
}
