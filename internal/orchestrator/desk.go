package orchestrator

import (
	"context"

	"coder/internal/chat"
	"coder/internal/show"
	"coder/internal/undo"
)

// Desk is whom commands turn to that concern more than the conversation: the
// other sessions, the files, the program itself. A nil function is something
// that cannot be done here, and the command says so.
type Desk struct {
	// SwitchModel takes another model, at once. What it says is worth a notice:
	// why the choice will not be remembered.
	SwitchModel func(ctx context.Context, name string) (notice string)
	// Models lists the models there are to choose from. With an error the table
	// holds what is known without asking.
	Models func(ctx context.Context) (show.Table, error)

	NewSession func() string // makes the id of a session to come
	Sessions   func(ctx context.Context) (show.Table, error)
	// Find makes sure that there is a session id and that nobody else is in it.
	// Here tells that it is the one in use.
	Find   func(ctx context.Context, id string) (here bool, err error)
	Export func(ctx context.Context, to Export) (path string, err error)

	Diff func(ctx context.Context, what Diff) (string, error)
	// Undo and Redo take back what turns did to files, and take that back.
	Undo, Redo func(context.Context, undo.Call) (undo.Report, error)

	Spent  func() []Spending // by turn and model, oldest first
	Agents func() Listing    // those that the model may give work to
	Config func() show.Table
	Status func(ctx context.Context) [][]string
	// Trust trusts the folder, ends that, or tells how it stands.
	Trust func(ctx context.Context, do Trust) (string, error)
}

// Export says how a session is to be written down.
type Export struct {
	Format string // json, md or html; empty goes by Path
	Path   string // empty means a name of the program's choosing
}

// Diff says which changes to show.
type Diff struct {
	Full bool   // line by line
	Path string // only this file or folder; empty means all
}

// Spending is what the replies of one model cost in one turn.
type Spending struct {
	Turn  int // from 1
	Title string
	Model string
	chat.Usage
	USD   float64
	Known bool // that USD is the price
}

// Listing is things by name, and what was wrong with others.
type Listing struct {
	Items    []Item
	Warnings []string
}

// Item is a thing that has a name, and what it is for.
type Item struct{ Name, About string }

// Trust is what to do about the trust in a folder.
type Trust uint8

// What to do about trust.
const (
	AskTrust Trust = iota
	GiveTrust
	EndTrust
)

// Leave says where the person wants to go from this session. It comes back as
// an error once the command that asked for it is on record; the face obeys it.
type Leave struct {
	New    bool   // to a new session, under the id in Resume
	Resume string // the session to go to
	Exit   bool   // out of the program
}

func (l *Leave) Error() string {
	switch {
	case l.Exit:
		return "leave the program"
	case l.New:
		return "leave for a new session"
	}
	return "leave for session " + l.Resume
}

// notHere is the error of a command whose means are missing.
func notHere(name string) error { return &CommandError{"/" + name + " is not available here"} }

// noArguments refuses what follows a command that takes nothing.
func (in invocation) noArguments(name string) error {
	if in.args == "" {
		return nil
	}
	return &CommandError{"/" + name + " takes no arguments"}
}
