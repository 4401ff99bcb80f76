package app

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"coder/internal/event"
	"coder/internal/orchestrator"
	"coder/internal/show"
	"coder/internal/supervisor"
	"coder/internal/trust"
)

// desk serves the slash commands of one session that concern more than its
// conversation.
type desk struct {
	*house
	session string
	hands   *hands

	mu      sync.Mutex // guards the fields below
	spent   ledger
	touched touched
}

func (h *house) desk(sessionID string, hs *hands) *desk {
	return &desk{house: h, session: sessionID, hands: hs}
}

// services are what the desk can do.
func (d *desk) services() orchestrator.Desk {
	return orchestrator.Desk{
		SwitchModel: d.switchModel, Models: d.models,
		NewSession: func() string { return newSessionID(d.env.Now()) },
		Sessions:   d.sessions, Find: d.find, Export: d.export,
		Diff: d.diff, Spent: d.spending, Agents: d.hands.crew.listing,
		Config: d.settingsTable, Status: d.status, Trust: d.changeTrust,
	}
}

// watch tells the desk, too, what is on record.
func (d *desk) watch(next func(event.Record, supervisor.When)) func(event.Record, supervisor.When) {
	return func(r event.Record, when supervisor.When) {
		next(r, when)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.spent.add(r)
		d.touched.add(r)
	}
}

// settingsTable shows every setting and where it comes from, secrets masked.
func (h *house) settingsTable() show.Table {
	t := show.Table{Head: []string{"setting", "value", "from"}}
	for _, r := range h.report.Rows() {
		t.Rows = append(t.Rows, []string{r.Key, oneLine(r.Value), r.Origin.String()})
	}
	return t
}

// status tells what this session runs with.
func (d *desk) status(ctx context.Context) [][]string {
	rows := [][]string{
		{"version", Version},
		{"session", d.session},
		{"folder", d.root},
		{"trust", d.standing()},
		{"provider", d.providerWords()},
		{"sandbox", d.sandboxWords(ctx)},
		{"records", d.whereKept()},
	}
	if names := d.withheld(); len(names) > 0 {
		rows = append(rows, []string{"withheld from commands", strings.Join(names, ", ")})
	}
	if frozen := d.conf.Permission.Frozen; len(frozen) > 0 {
		rows = append(rows, []string{"frozen", strings.Join(frozen, ", ")})
	}
	return rows
}

func (h *house) providerWords() string {
	switch {
	case h.scripted():
		return "a script"
	case h.conf.Provider.BaseURL == "":
		return "none"
	}
	return h.conf.Provider.Kind + " at " + oneLine(h.conf.Provider.BaseURL)
}

func (d *desk) sandboxWords(ctx context.Context) string {
	return d.hands.confiner.Words(ctx)
}

func (d *desk) whereKept() string {
	if d.flags.ephemeral {
		return "nothing is kept"
	}
	return filepath.Join(d.logs(), d.session)
}

// standing is how the folder stands now, which may not be how it stood when
// the program started.
func (h *house) standing() string {
	now, err := h.trust().Of(h.root)
	if err != nil {
		return fmt.Sprintf("%s (%v)", now, err)
	}
	return now.String()
}

// changeTrust trusts the folder as it is now, ends that, or tells how it
// stands. Settings are read when the program starts.
func (h *house) changeTrust(_ context.Context, do orchestrator.Trust) (string, error) {
	act := map[orchestrator.Trust]func(string) error{
		orchestrator.GiveTrust: h.trust().Give, orchestrator.EndTrust: h.trust().Take,
	}[do]
	if act != nil {
		if err := act(h.root); err != nil {
			return "", err
		}
	}
	text := "this folder is " + h.standing()
	if files := trust.Settings(h.root); len(files) > 0 {
		text += "\nit has settings of its own: " + strings.Join(files, ", ")
	}
	if act != nil {
		text += "\nsettings are read when the program starts, so this holds from the next start on"
	}
	return text, nil
}

// ledger is what was spent, by turn and model.
type ledger struct {
	turns map[string]int // by task; those of a subtask count with its parent
	names []string       // of the turns, the first is that of turn 1
	rows  []orchestrator.Spending
}

func (l *ledger) add(r event.Record) {
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if l.turns == nil {
			l.turns = make(map[string]int)
		}
		if turn, ok := l.turns[e.ParentID]; ok && e.ParentID != "" {
			l.turns[e.TaskID] = turn
			return
		}
		l.names = append(l.names, e.Title)
		l.turns[e.TaskID] = len(l.names)
	case event.MessageAdded:
		if e.Usage != nil {
			l.reply(l.turns[r.Task], e)
		}
	}
}

// reply adds to the row of the turn and the model, which is among the last.
func (l *ledger) reply(turn int, e event.MessageAdded) {
	for i := len(l.rows) - 1; i >= 0 && l.rows[i].Turn == turn; i-- {
		if l.rows[i].Model == e.Model {
			l.rows[i].Usage = l.rows[i].Add(*e.Usage)
			return
		}
	}
	row := orchestrator.Spending{Turn: turn, Model: e.Model, Usage: *e.Usage}
	if 0 < turn && turn <= len(l.names) {
		row.Title = oneLine(l.names[turn-1])
	}
	l.rows = append(l.rows, row)
}

// spending is what was spent, with prices as far as they are known. What the
// provider said it cost comes first.
func (d *desk) spending() []orchestrator.Spending {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []orchestrator.Spending
	for _, s := range d.spent.rows {
		if s.USD, s.Known = s.Cost, s.Cost > 0; !s.Known {
			s.USD, s.Known = d.figures(s.Model).Price.Cost(s.In, s.Cached, s.Out)
		}
		all = append(all, s)
	}
	return all
}

// shelf is where sessions are kept, without an engine to run them.
func (h *house) shelf() (*supervisor.Supervisor, error) {
	if h.kept != nil {
		return h.kept, nil
	}
	logs, sessions, err := h.stores()
	if err != nil {
		return nil, err
	}
	return supervisor.New(supervisor.Config{Store: logs, Sessions: sessions, Dir: h.root, Now: h.env.Now, Key: h.key}), nil
}
