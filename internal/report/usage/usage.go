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

// Grouping is what usage is grouped by.
type Grouping string

// The groupings.
const (
	Day     Grouping = "day" // in the user's time zone
	Project Grouping = "project"
	Model   Grouping = "model"
)

// Groupings lists all groupings.
var Groupings = []Grouping{Day, Project, Model}

// Sum is the total of a day, a project or a model.
type Sum struct {
	Key      string  `json:"of"`
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
	By       Grouping
	Since    time.Time
	Location *time.Location
	WithCost func(model string, u chat.Usage) chat.Usage

	sums        map[string]*Sum
	sessions    map[string]map[string]bool // counted sessions, by sum
	total       Sum
	allSessions map[string]bool
}

// MayContainUsage reports whether a log line may contain usage.
func MayContainUsage(line []byte) bool { return bytes.Contains(line, []byte(`"usage"`)) }

// Add adds a record of a session.
func (t *Tally) Add(project, session string, r event.Record) {
	model, used, ok := event.UsageOf(r.Event)
	if !ok || r.Time.Before(t.Since) {
		return
	}
	used = t.WithCost(model, used)
	name := map[Grouping]string{Day: r.Time.In(t.Location).Format(time.DateOnly), Project: project, Model: model}[t.By]
	if t.sums == nil {
		t.sums, t.sessions, t.allSessions = make(map[string]*Sum), make(map[string]map[string]bool), make(map[string]bool)
	}
	if t.sums[name] == nil {
		t.sums[name], t.sessions[name] = &Sum{Key: name}, make(map[string]bool)
	}
	id := project + "\x00" + session
	t.sessions[name][id], t.allSessions[id] = true, true
	t.sums[name].add(used, len(t.sessions[name]))
	t.total.add(used, len(t.allSessions))
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
			return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.In+b.Out, a.In+a.Out), strings.Compare(a.Key, b.Key))
		})
	}
	return all, t.total
}
