// Package usage adds up what models used and cost over many sessions.
package usage

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// By is what usage is grouped by.
type By string

// The groupings.
const (
	Day     By = "day" // in the user's time zone
	Project By = "project"
	Model   By = "model"
)

// Ways lists all groupings.
var Ways = []By{Day, Project, Model}

// Sum is the total of a day, a project or a model.
type Sum struct {
	Of       string  `json:"of"`
	Sessions int     `json:"sessions"`
	Requests int     `json:"requests"`
	In       int     `json:"in"`
	Cached   int     `json:"cached"`
	Out      int     `json:"out"`
	Cost     float64 `json:"cost_usd"`
	Unpriced bool    `json:"unpriced"` // some usage has no known price and is missing in Cost
}

// Tally adds up usage. Set its fields before the first [Tally.Add].
type Tally struct {
	By     By
	Since  time.Time
	Zone   *time.Location
	Priced func(model string, u chat.Usage) chat.Usage

	sums     map[string]*Sum
	sessions map[string]map[string]bool // counted sessions, by sum
	total    Sum
	all      map[string]bool
}

// Wants reports whether a log line may contain usage.
func Wants(line []byte) bool { return bytes.Contains(line, []byte(`"usage"`)) }

// Add adds a record of a session.
func (t *Tally) Add(project, session string, r event.Record) {
	model, used, ok := event.Used(r.Event)
	if !ok || r.Time.Before(t.Since) {
		return
	}
	used = t.Priced(model, used)
	name := map[By]string{Day: r.Time.In(t.Zone).Format(time.DateOnly), Project: project, Model: model}[t.By]
	if t.sums == nil {
		t.sums, t.sessions, t.all = make(map[string]*Sum), make(map[string]map[string]bool), make(map[string]bool)
	}
	if t.sums[name] == nil {
		t.sums[name], t.sessions[name] = &Sum{Of: name}, make(map[string]bool)
	}
	id := project + "\x00" + session
	t.sessions[name][id], t.all[id] = true, true
	t.sums[name].add(used, len(t.sessions[name]))
	t.total.add(used, len(t.all))
}

func (s *Sum) add(u chat.Usage, sessions int) {
	s.Sessions, s.Requests = sessions, s.Requests+1
	s.In, s.Cached, s.Out, s.Cost = s.In+u.In, s.Cached+u.Cached, s.Out+u.Out, s.Cost+u.Cost
	s.Unpriced = s.Unpriced || u.Unpriced
}

// Sums returns the sums: days in order, other groupings by cost, highest first.
func (t *Tally) Sums() (all []Sum, total Sum) {
	all = []Sum{}
	for _, name := range slices.Sorted(maps.Keys(t.sums)) {
		all = append(all, *t.sums[name])
	}
	if t.By != Day {
		slices.SortStableFunc(all, func(a, b Sum) int {
			return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.In+b.Out, a.In+a.Out), strings.Compare(a.Of, b.Of))
		})
	}
	return all, t.total
}
