package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/chat"
	"coder/internal/show"
)

// turnsShown is how many of the last turns /cost shows by themselves.
const turnsShown = 20

func costCommand() command {
	return command{name: "cost", help: "show tokens and money, by turn and model", run: func(_ context.Context, in invocation) (string, error) {
		if in.Desk.Spent == nil {
			return "", notHere("cost")
		}
		all := in.Desk.Spent()
		switch {
		case len(all) > 0:
		case in.replied():
			return "the provider did not report what the replies of this session used", nil
		default:
			return "nothing was spent in this session", nil
		}
		text := aligned(turnsTable(all)) + "\n\n" + aligned(modelsTable(all))
		if slices.ContainsFunc(all, func(s Spending) bool { return !s.Known }) {
			text += "\nsome prices are not known, so their replies are left out of the sums; provider.model_info can name them"
		}
		return text, nil
	}}
}

// replied reports whether the model has said anything in this session. What
// stands below a command of the person's own was not said by it.
func (in invocation) replied() bool {
	own := false
	for _, m := range in.Talk.Messages() {
		if m.Role == chat.Assistant && !own {
			return true
		}
		own = m.Role == chat.User && strings.HasPrefix(strings.TrimSpace(m.Text()), "!")
	}
	return false
}

// turnsTable shows the last turns, and those before them in one line.
func turnsTable(all []Spending) show.Table {
	t := show.Table{Head: []string{"turn", "model", "in", "cached", "out", "cost", "about"}}
	early := max(len(all)-turnsShown, 0)
	if early > 0 {
		sum := total(all[:early])
		t.Rows = append(t.Rows, spent("before", sum, ""))
	}
	for _, s := range all[early:] {
		t.Rows = append(t.Rows, spent(strconv.Itoa(s.Turn), s, s.Title))
	}
	return t
}

// modelsTable shows the sums, by model and of all.
func modelsTable(all []Spending) show.Table {
	t := show.Table{Head: []string{"", "model", "in", "cached", "out", "cost"}}
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.Model) {
			names = append(names, s.Model)
		}
	}
	for _, name := range names {
		of := total(slices.DeleteFunc(slices.Clone(all), func(s Spending) bool { return s.Model != name }))
		of.Model = name
		t.Rows = append(t.Rows, spent("sum", of, ""))
	}
	if len(names) > 1 {
		t.Rows = append(t.Rows, spent("all", total(all), ""))
	}
	return t
}

// total is the sum. Its price is known if any part's is.
func total(all []Spending) (sum Spending) {
	for _, s := range all {
		sum.Usage = sum.Add(s.Usage)
		if s.Known {
			sum.USD, sum.Known = sum.USD+s.USD, true
		}
	}
	return sum
}

func spent(name string, s Spending, about string) []string {
	cost := "unknown"
	if s.Known {
		cost = fmt.Sprintf("$%.4f", s.USD)
	}
	return []string{name, s.Model, strconv.Itoa(s.In), strconv.Itoa(s.Cached), strconv.Itoa(s.Out), cost, about}
}
