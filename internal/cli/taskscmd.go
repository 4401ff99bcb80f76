package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/sanitize"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term"
)

// taskRow is one task with the questions that wait for an answer.
type taskRow struct {
	Session string        `json:"session_id"`
	ID      string        `json:"taskId"`
	Title   string        `json:"title"`
	Status  string        `json:"status"`
	Created time.Time     `json:"createdAt"`
	Open    []uip.Request `json:"interactions"`
}

// tasks reads what was asked for and decided in one session. Answered is told
// of every answer.
func tasks(ctx context.Context, logs event.Store, session string, answered func(uip.Response)) ([]taskRow, error) {
	var (
		all  task.Tasks
		open []uip.Request
		when = make(map[string]time.Time)
	)
	for r, err := range logs.Read(ctx, session, 0, event.Domain) {
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", session, err)
		}
		switch e := r.Event.(type) {
		case event.TaskCreated:
			when[e.TaskID] = r.Time
		case event.InteractionRequested:
			open = append(open, e.Request)
		case event.InteractionResponded:
			open = slices.DeleteFunc(open, func(q uip.Request) bool { return q.ID == e.ID })
			answered(e.Response)
		}
		if err := all.Add(r); err != nil {
			return nil, fmt.Errorf("read session %s: %w", session, err)
		}
	}
	var rows []taskRow
	for _, t := range all.All() {
		row := taskRow{Session: session, ID: t.ID, Title: t.Title, Status: string(t.Status), Created: when[t.ID], Open: []uip.Request{}}
		for _, q := range open {
			if q.TaskID == t.ID && !t.Status.Ended() {
				row.Open = append(row.Open, q)
			}
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	return rows, nil
}

// allTasks reads every session, the newest first. A session that cannot be
// read is told of and left out.
func (inv *invocation) allTasks(ctx context.Context, store *app.Store, answered func(uip.Response)) []taskRow {
	rows := []taskRow{}
	for _, id := range store.IDs() {
		more, err := tasks(ctx, store.Logs, id, answered)
		if err != nil {
			inv.warn(err.Error())
		}
		rows = append(rows, more...)
	}
	return rows
}

// runTasks lists the tasks and what they wait for.
func (inv *invocation) runTasks(ctx context.Context) error {
	fl := inv.flags
	if len(fl.args) > 0 && !fl.full || len(fl.args) > 1 {
		return usagef("coder tasks takes no arguments, save the id of an interaction with --full")
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	rows := inv.allTasks(ctx, a.Store(), func(uip.Response) {})
	switch {
	case fl.json:
		_, err := fmt.Fprintf(inv.Stdout, "%s\n", jsonx.Must(rows))
		return err
	case fl.full:
		return inv.printQuestions(rows, strings.Join(fl.args, ""))
	}
	return printTasks(inv.Stdout, rows, inv.words)
}

func printTasks(w io.Writer, rows []taskRow, words *i18n.Printer) error {
	var b strings.Builder
	if len(rows) == 0 {
		b.WriteString(words.T("there are no tasks here") + "\n")
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "%s  %-13s %s  (%s)\n", r.Created.Local().Format("2006-01-02 15:04"), words.T(r.Status), oneLine(r.Title), r.Session)
		for _, q := range r.Open {
			b.WriteString(words.T("    waits for an answer: %s", sanitize.Reveal(oneLine(words.Said(q.Display.Title)))) + "\n")
			if q.Display.Description != "" {
				fmt.Fprintf(&b, "      %s\n", sanitize.Reveal(oneLine(words.Said(q.Display.Description))))
			}
			for _, part := range q.Parts {
				fmt.Fprintf(&b, "      %s: %s\n", part.ID, sanitize.Reveal(oneLine(part.Display.Title)))
			}
			if q.Purpose == uip.ConfirmRiskyAction {
				b.WriteString("      " + words.T("all of it: coder tasks --full %s", q.ID) + "\n")
			}
			fmt.Fprintf(&b, "      coder respond %s --option %s\n", q.ID, strings.Join(optionIDs(q), "|"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printQuestions shows everything that an open question is about: the one with
// this id, or all.
func (inv *invocation) printQuestions(rows []taskRow, id string) error {
	cards, found := term.Cards{Words: inv.words, Whole: true}, false
	for _, r := range rows {
		for _, q := range r.Open {
			if id != "" && q.ID != id {
				continue
			}
			found = true
			if _, err := fmt.Fprintf(inv.Stdout, "%s\n%s\n", q.ID, cards.Draw(q)); err != nil {
				return err
			}
		}
	}
	if !found && id != "" {
		return inputf("no open interaction %s; it was withdrawn, never asked, or is one of another folder (--cwd DIR; coder tasks lists those that wait)", id)
	}
	return nil
}

func optionIDs(q uip.Request) (ids []string) {
	for _, o := range q.Options {
		ids = append(ids, o.ID)
	}
	if len(ids) == 0 {
		return []string{"…"}
	}
	return ids
}
