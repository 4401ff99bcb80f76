package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/serve"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// taskRow is a task with its open questions.
type taskRow struct {
	Session       string        `json:"session_id"`
	ID            string        `json:"taskId"`
	Title         string        `json:"title"`
	Status        string        `json:"status"`
	Running       bool          `json:"running"` // a process is working on it
	Created       time.Time     `json:"createdAt"`
	OpenQuestions []uip.Request `json:"interactions"`
}

// readTasks reads the tasks and answers of one session. answered is called with every answer.
func readTasks(ctx context.Context, logs event.Store, session string, answered func(uip.Response)) ([]taskRow, error) {
	var (
		all  task.Tasks
		open []uip.Request
		when = make(map[string]time.Time)
	)
	for r, err := range logs.Read(ctx, session, 0, event.LogDomain) {
		if err != nil {
			return nil, message.Errorf("read session %s: %w", session, err)
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
			return nil, message.Errorf("read session %s: %w", session, err)
		}
	}
	var rows []taskRow
	for _, t := range all.All() {
		row := taskRow{Session: session, ID: t.ID, Title: t.Title, Status: string(t.Status), Created: when[t.ID],
			OpenQuestions: []uip.Request{}}
		for _, q := range open {
			if q.TaskID == t.ID && !t.Status.IsEnded() {
				row.OpenQuestions = append(row.OpenQuestions, q)
			}
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	return rows, nil
}

// readAllTasks reads every session, newest first. It reports a session that cannot be read, and leaves it
// out.
func (inv *invocation) readAllTasks(ctx context.Context, store *app.Store, answered func(uip.Response)) []taskRow {
	rows := []taskRow{}
	for _, id := range store.LoggedSessions() {
		more, err := readTasks(ctx, store.Logs, id, answered)
		if err != nil {
			inv.warn(err.Error())
		}
		for i := range more {
			more[i].Running = task.Status(more[i].Status) == task.StatusInProgress && store.IsInUse(id)
		}
		rows = append(rows, more...)
	}
	return rows
}

// runTasks lists the tasks and what they wait for.
func (inv *invocation) runTasks(ctx context.Context) error {
	fl, words := inv.flags, inv.printer
	if len(fl.args) > 0 && !fl.fullOutput || len(fl.args) > 1 {
		return usageErrorf("coder tasks takes no arguments, except an interaction id with --full")
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	rows := append(inv.readAllTasks(ctx, a.Store(), func(uip.Response) {}), inv.fleetTasks(ctx, a, "--about", a.Root)...)
	switch {
	case fl.json:
		return inv.printJSON(rows)
	case fl.fullOutput:
		return inv.printQuestions(rows, strings.Join(fl.args, ""))
	case len(rows) == 0:
		return inv.printWrapped(words.T("no tasks here"))
	}
	var lines []string
	for _, r := range rows {
		status := words.T(app.TaskStatusText(r.Status, r.Running))
		status += strings.Repeat(" ", max(0, 15-ink.Width(status)))
		lines = append(lines, fmt.Sprintf("%s  %s  %s  (%s)", r.Created.Local().Format("2006-01-02 15:04"), status,
			singleLine(r.Title), r.Session))
		if task.Status(r.Status) == task.StatusInProgress && !r.Running {
			lines = append(lines, words.T("    continue with: coder -r %s", r.Session))
		}
		for _, q := range r.OpenQuestions {
			title := q.Display.Title
			if q.HasOwnTitle() {
				title = words.TranslateText(title)
			}
			lines = append(lines, words.T("    waiting for an answer: %s", sanitize.Reveal(singleLine(title))))
			if q.Display.Description != "" {
				lines = append(lines, "      "+sanitize.Reveal(singleLine(words.TranslateText(q.Display.Description))))
			}
			for _, part := range q.Parts {
				lines = append(lines, "      "+part.ID+": "+sanitize.Reveal(singleLine(part.Display.Title)))
			}
			if q.Purpose == uip.PurposeConfirmRiskyAction {
				lines = append(lines, "      "+words.T("details: coder tasks --full %s", q.ID))
			}
			lines = append(lines, fmt.Sprintf("      coder respond %s %s", q.ID, answerFlags(q)))
		}
	}
	return inv.printWrapped(lines...)
}

// printQuestions shows an open question completely: the one with this id, or all.
func (inv *invocation) printQuestions(rows []taskRow, id string) error {
	cards, found := term.Cards{Translator: inv.printer, ASCII: inv.useASCII(), NoFold: true}, false
	for _, r := range rows {
		for _, q := range r.OpenQuestions {
			if id != "" && q.ID != id {
				continue
			}
			found = true
			if err := inv.print(q.ID, cards.Draw(q)); err != nil {
				return err
			}
		}
	}
	switch {
	case !found && id == "":
		return inv.printWrapped(inv.printer.T("no task here is waiting for an answer"))
	case !found:
		return notOpenError(id)
	}
	return nil
}

func notOpenError(id string) error {
	return inputErrorf("no open interaction %s; it was withdrawn, never asked, or belongs to another folder (--cwd DIR; coder tasks lists the open ones)", id)
}

// answerFlags returns the flags of coder respond that answer q.
func answerFlags(q uip.Request) string {
	ids := optionIDs(q)
	switch {
	case len(ids) == 0 && len(q.Parts) > 0:
		var parts []string
		for _, part := range q.Parts {
			parts = append(parts, "--answer "+part.ID+"="+cmp.Or(strings.Join(optionIDs(part), "|"), "TEXT"))
		}
		return strings.Join(parts, " ")
	case len(ids) == 0:
		return "--input TEXT"
	}
	how := "--option " + strings.Join(ids, "|")
	if q.Display.Metadata[uip.MetaHunks] != "" {
		how += " | --hunks 1,2"
	}
	return how
}

func optionIDs(q uip.Request) (ids []string) {
	for _, o := range q.Options {
		if o.ID != uip.OptionSome { // useless without hunks
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// runRespond answers an open question, and continues its task.
func (inv *invocation) runRespond(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	fl.outputFormat, fl.inputFormat = "text", "text"
	in, session, q, err := inv.findQuestion(ctx, a, fl.args[0])
	if err != nil {
		return cmp.Or(inv.respondToFleet(ctx, a, fl.args[0]), err)
	}
	a = in
	err = inv.recordAnswer(ctx, a, session, q)
	if errors.Is(err, serve.ErrAnsweredElsewhere) {
		return inv.printWrapped(inv.printer.T("answered; the process that asked continues"))
	}
	if err != nil || fl.recordOnly {
		return err
	}
	if fl.onAsk == "" {
		fl.onAsk = "park" // a user who answers later does the same with the next question
	}
	fl.session.ResumeID = session
	return inv.withSession(ctx, a, inv.newOutput(a), func(s *headless) error {
		return s.runTurn(ctx,
			orchestrator.Input{})
	})
}

// findQuestion finds the open question id, here or in the folder of a process that waits for its answer.
func (inv *invocation) findQuestion(ctx context.Context, a *app.Workspace, id string) (in *app.Workspace,
	session string, q uip.Request, err error) {
	var closed error
	rows := inv.readAllTasks(ctx, a.Store(), func(a uip.Response) {
		if a.ID == id {
			closed = supervisor.ClosedError(a)
		}
	})
	for _, row := range rows {
		for _, q := range row.OpenQuestions {
			if q.ID == id {
				return a, row.Session, q, nil
			}
		}
	}
	if closed != nil {
		return nil, "", q, inputErrorf("interaction %s: %v", id, closed)
	}
	if place, ok := a.Store().Inbox().FindOrigin(id); ok && a.Home != "" && place.Root != a.Root &&
		place.Root != a.Options.Dir {
		there := a.Options
		there.Dir = place.Root
		settings, err := app.Load(a.Env, there)
		if err != nil {
			return nil, "", q, err
		}
		other, err := app.New(a.Env, there, settings, inv.warn)
		if err != nil {
			return nil, "", q, err
		}
		return inv.findQuestion(ctx, other, id)
	}
	return nil, "", q, notOpenError(id)
}

// recordAnswer records the flags' answer to q: through the process that asked, if it is still running,
// otherwise here.
func (inv *invocation) recordAnswer(ctx context.Context, a *app.Workspace, session string, q uip.Request) error {
	fl := inv.flags
	answer := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: orchestrator.ActorUser, Option: fl.option, Input: fl.input,
		Comment: fl.comment}
	for _, part := range fl.answers {
		id, option, _ := strings.Cut(part, "=")
		i := slices.IndexFunc(q.Parts, func(p uip.Request) bool { return p.ID == id })
		if i < 0 {
			return inputErrorf("the question has no part %s; answer with %s", id, answerFlags(q))
		}
		so := uip.Response{ID: id, Option: option}
		if q.Purpose != uip.PurposeConfirmRiskyAction && !slices.Contains(optionIDs(q.Parts[i]), option) {
			so.Option, so.Input = "", option // free text
		}
		if which, ok := strings.CutPrefix(option, uip.OptionSome+":"); ok {
			so.Option, so.Input = uip.OptionSome, which
		}
		answer.Parts = append(answer.Parts, so)
	}
	answer = a.MaskAnswer(answer)
	if answer.Option == uip.OptionSome && q.Display.Metadata[uip.MetaHunks] == "" {
		return inputErrorf("no hunks can be chosen here; answer with %s", answerFlags(q))
	}
	if err := uip.CheckResponse(q, answer); err != nil {
		return inputErrorf("%v; answer with %s", err, answerFlags(q))
	}
	err := a.Store().Supervisor.Answer(ctx, session, answer)
	if claimed := (*event.ClaimedError)(nil); errors.As(err, &claimed) && a.Home != "" {
		err = serve.ForwardAnswer(ctx, a, session, q, answer)
	}
	if errors.Is(err, supervisor.ErrAnswered) || errors.Is(err, supervisor.ErrWithdrawn) ||
		errors.Is(err, supervisor.ErrKeysMissing) {
		return inputErrorf("%v", err)
	}
	return err
}
