package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/sanitize"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term"
)

// sessionIDs are the sessions kept here, the newest first.
func (h *house) sessionIDs() []string {
	ids := sessionsUnder(h.logs(), "")
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

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
func (h *house) allTasks(ctx context.Context, answered func(uip.Response)) ([]taskRow, error) {
	logs, _, err := h.stores()
	if err != nil {
		return nil, err
	}
	rows := []taskRow{}
	for _, id := range h.sessionIDs() {
		more, err := tasks(ctx, logs, id, answered)
		if err != nil {
			h.warn(err.Error())
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// runTasks lists the tasks and what they wait for.
func runTasks(ctx context.Context, env Env, fl *flags) error {
	if len(fl.args) > 0 && !fl.full || len(fl.args) > 1 {
		return usagef("coder tasks takes no arguments, save the id of an interaction with --full")
	}
	h, err := newHouse(env, fl, warner(env, fl))
	if err != nil {
		return err
	}
	rows, err := h.allTasks(ctx, func(uip.Response) {})
	if err != nil {
		return err
	}
	switch {
	case fl.json:
		_, err := fmt.Fprintf(env.Stdout, "%s\n", jsonx.Must(rows))
		return err
	case fl.full:
		return h.printQuestions(rows, strings.Join(fl.args, ""))
	}
	return printTasks(env.Stdout, rows, h.words())
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
func (h *house) printQuestions(rows []taskRow, id string) error {
	cards, found := term.Cards{Words: h.words(), Whole: true}, false
	for _, r := range rows {
		for _, q := range r.Open {
			if id != "" && q.ID != id {
				continue
			}
			found = true
			if _, err := fmt.Fprintf(h.env.Stdout, "%s\n%s\n", q.ID, cards.Draw(q)); err != nil {
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

// runRespond answers a question that waits, and goes on with its task.
func runRespond(ctx context.Context, env Env, fl *flags) error {
	if len(fl.args) != 1 {
		return usagef("coder respond needs the id of one interaction; coder tasks lists them")
	}
	fl.outputFormat, fl.inputFormat = "text", "text"
	out := newOutput(env, fl)
	h, err := newHouse(env, fl, out.warn)
	if err != nil {
		return err
	}
	h, session, q, err := h.findQuestion(ctx, fl.args[0])
	if err != nil {
		return err
	}
	err = h.answer(ctx, session, q)
	if errors.Is(err, errElsewhere) {
		_, err := fmt.Fprintln(env.Stdout, h.words().T("answered; the process that asked goes on with it"))
		return err
	}
	if err != nil || fl.record {
		return err
	}
	if h.flags.onAsk == "" {
		h.flags.onAsk = "park" // whoever answers later answers the next one later too
	}
	h.flags.resume = session
	return h.withSession(ctx, out, func(s *supervisor.Session) error { return h.turn(ctx, s, out, "") })
}

// findQuestion finds the open question id, here or in the folder of a process
// that waits for its answer.
func (h *house) findQuestion(ctx context.Context, id string) (in *house, session string, q uip.Request, err error) {
	var closed error
	rows, err := h.allTasks(ctx, func(a uip.Response) {
		if a.ID == id {
			closed = supervisor.Closed(a)
		}
	})
	if err != nil {
		return nil, "", q, err
	}
	for _, row := range rows {
		for _, q := range row.Open {
			if q.ID == id {
				return h, row.Session, q, nil
			}
		}
	}
	if closed != nil {
		return nil, "", q, inputf("interaction %s: %v", id, closed)
	}
	if place, ok := h.inbox().Where(id); ok && h.home != "" && place.Root != h.root && place.Root != h.flags.dir {
		there := *h.flags
		there.dir = place.Root
		other, err := newHouse(h.env, &there, h.warn)
		if err != nil {
			return nil, "", q, err
		}
		return other.findQuestion(ctx, id)
	}
	return nil, "", q, inputf("no open interaction %s; it was withdrawn, never asked, or is one of another folder (--cwd DIR; coder tasks lists those that wait)", id)
}

// answer puts the answer that the flags give to q on record: by the process
// that asked, if it is still there, or else here.
func (h *house) answer(ctx context.Context, session string, q uip.Request) error {
	a := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: orchestrator.ActorUser, Option: h.flags.option, Input: h.flags.input, Comment: h.flags.comment}
	for _, part := range h.flags.answers {
		id, option, _ := strings.Cut(part, "=")
		a.Parts = append(a.Parts, uip.Response{ID: id, Option: option})
	}
	if err := uip.Check(q, a); err != nil {
		return inputf("%v; the options are %s", err, strings.Join(optionIDs(q), ", "))
	}
	sup, err := h.shelf()
	if err != nil {
		return err
	}
	err = sup.Answer(ctx, session, a)
	if claimed := (*event.ClaimedError)(nil); errors.As(err, &claimed) && h.home != "" {
		err = h.handOver(ctx, sup, session, q, a)
	}
	if errors.Is(err, supervisor.ErrAnswered) || errors.Is(err, supervisor.ErrWithdrawn) {
		return inputf("%v", err)
	}
	return err
}

// oneLine is foreign text made fit for a list.
func oneLine(s string) string { return sanitize.Line(s, 400) }
