package slash

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
)

// maxTurns is how many of the last turns /cost lists one by one.
const maxTurns = 20

// Spending is the cost of one model's replies to one agent in one turn.
type Spending struct {
	Turn  int    // from 1
	Agent string // who worked for the main agent; "" for that one
	Title string
	Model string
	chat.Usage
	HasPrice bool // the price of some of it is known
}

// CostTally adds up a session's spending by turn, agent and model. It is safe for concurrent use.
type CostTally struct {
	// WithCost returns a usage with its cost, if known.
	WithCost func(model string, u chat.Usage) chat.Usage

	mu     sync.Mutex        // guards the fields below
	turns  map[string]int    // by task; a subtask counts with its parent
	agents map[string]string // of subtasks
	names  []string          // of the turns, beginning with turn 1
	rows   []Spending
}

// Add adds a record.
func (l *CostTally) Add(r event.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if model, used, ok := event.UsageOf(r.Event); ok {
		l.addUsage(r.Task, model, used)
	}
	if e, ok := r.Event.(event.TaskCreated); ok {
		if l.turns == nil {
			l.turns, l.agents = make(map[string]int), make(map[string]string)
		}
		if turn, ok := l.turns[e.ParentID]; ok && e.ParentID != "" {
			l.turns[e.TaskID], l.agents[e.TaskID] = turn, e.AgentID
			return
		}
		l.names = append(l.names, e.Title)
		l.turns[e.TaskID] = len(l.names)
	}
}

// addUsage adds to the row of a turn, agent and model, which is one of the last.
func (l *CostTally) addUsage(task, model string, u chat.Usage) {
	turn, agent := l.turns[task], l.agents[task]
	u = l.WithCost(model, u)
	for i := len(l.rows) - 1; i >= 0 && l.rows[i].Turn == turn; i-- {
		if row := &l.rows[i]; row.Model == model && row.Agent == agent {
			row.Usage, row.HasPrice = row.Add(u), row.HasPrice || !u.Unpriced
			return
		}
	}
	row := Spending{Turn: turn, Agent: sanitize.Line(agent, 40), Model: model, Usage: u, HasPrice: !u.Unpriced}
	if 0 < turn && turn <= len(l.names) {
		row.Title = sanitize.Line(l.names[turn-1], 400)
	}
	l.rows = append(l.rows, row)
}

// Rows returns the spending, oldest first, with known prices.
func (l *CostTally) Rows() []Spending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.rows)
}

// Cost shows tokens and cost.
func Cost(ledger *CostTally) Command {
	return Command{Name: "cost", ShowsOnly: true, Help: "show tokens and cost, by turn and model",
		Run: func(_ context.Context, c call) (outcome, error) {
			all := ledger.Rows()
			switch {
			case len(all) > 0:
			case hasReplied(c.Conversation().Messages()):
				return showText("the provider did not report the token usage of this session")
			case awaitsReply(c.Conversation().Messages()):
				return showText("coder shows the usage after the first reply")
			default:
				return showText("nothing was spent in this session")
			}
			blocks := []display.Block{spendingByTurn(all), display.Text(""), spendingByModel(all)}
			if slices.ContainsFunc(all, func(s Spending) bool { return s.Estimated }) {
				blocks = append(blocks,
					display.Text("~ marks an estimate: the provider did not report the usage of a cut-off reply"))
			}
			if slices.ContainsFunc(all, func(s Spending) bool { return s.Unpriced }) {
				blocks = append(blocks,
					display.Text("unknown prices are not included in the cost; provider.model_info can set them"))
			}
			return show(blocks...)
		}}
}

// awaitsReply reports whether the last message waits for a reply of the model.
func awaitsReply(said []chat.Message) bool {
	return len(said) > 0 && said[len(said)-1].Role == chat.User && !isOwnCommand(said[len(said)-1])
}

// isOwnCommand reports whether a message is the user's own command: the message after it is its output,
// not a reply of the model.
func isOwnCommand(m chat.Message) bool {
	return m.Role == chat.User && strings.HasPrefix(strings.TrimSpace(m.Text()), "!")
}

// hasReplied reports whether the model has replied in this session. The output of the user's own command is
// not a reply.
func hasReplied(said []chat.Message) bool {
	own := false
	for _, m := range said {
		if m.Role == chat.Assistant && !own {
			return true
		}
		own = isOwnCommand(m)
	}
	return false
}

// spendingByTurn shows the last turns, and the earlier ones on one line.
func spendingByTurn(all []Spending) display.Table {
	t := display.Table{Header: display.TextCells("turn", "model", "in", "cached", "out", "cost", "about")}
	early := max(len(all)-maxTurns, 0)
	if early > 0 {
		sum := totalSpending(all[:early])
		t.Rows = append(t.Rows, spendingRow("before", sum, ""))
	}
	for _, s := range all[early:] {
		turn := strings.TrimSpace(strconv.Itoa(s.Turn) + " " + s.Agent)
		if s.Turn == 0 {
			turn = cmp.Or(s.Agent, "outside turns") // such as a requested summary
		}
		t.Rows = append(t.Rows, spendingRow(turn, s, s.Title))
	}
	return t
}

// spendingByModel shows the sums by model, and the total.
func spendingByModel(all []Spending) display.Table {
	t := display.Table{Header: display.TextCells("", "model", "in", "cached", "out", "cost")}
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.Model) {
			names = append(names, s.Model)
		}
	}
	for _, name := range names {
		of := totalSpending(slices.DeleteFunc(slices.Clone(all), func(s Spending) bool { return s.Model != name }))
		of.Model = name
		t.Rows = append(t.Rows, spendingRow("sum", of, ""))
	}
	if len(names) > 1 {
		t.Rows = append(t.Rows, spendingRow("all", totalSpending(all), ""))
	}
	return t
}

// totalSpending returns the sum. Its price is known if any part's is.
func totalSpending(all []Spending) (sum Spending) {
	for _, s := range all {
		sum.Usage = sum.Add(s.Usage)
		sum.HasPrice = sum.HasPrice || s.HasPrice
	}
	return sum
}

// spendingRow returns a table row. A name that is not a number is one of coder's own words.
func spendingRow(name string, s Spending, title string) []display.Cell {
	cost := display.TextCells("unknown")
	if s.HasPrice {
		cost = display.DataCells(fmt.Sprintf("$%.4f", s.Cost))
	}
	about := ""
	if s.Estimated {
		about = "~"
	}
	figures := display.DataCells(s.Model, about+strconv.Itoa(s.In), strconv.Itoa(s.Cached), about+strconv.Itoa(s.Out))
	return slices.Concat(display.TextCells(name), figures, cost, display.DataCells(title))
}
