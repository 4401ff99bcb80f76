package fleetcli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/fleet/checkout"
	"coder/internal/fleet/queue"
	"coder/internal/host/repofile"
	"coder/internal/policy/mode"
)

// handing are the flags of submit.
type handing struct {
	spec   queue.Spec
	count  int
	script string
}

// given are the flags of the commands about a task.
type given struct {
	option, input, comment string
	parts                  []string
	all, patch, branch     bool
	listen                 string
	older                  string // what prune looks for
	yes                    bool
}

func (c *call) submitFlags(f *flag.FlagSet) {
	s := &c.handing.spec
	f.StringVar(&s.Repo, "repo", "", "")
	f.StringVar(&s.Base, "base", "", "")
	f.StringVar(&s.Mode, "mode", "", "")
	f.StringVar(&s.Provider, "provider", "", "")
	f.StringVar(&s.Model, "model", "", "")
	f.Float64Var(&s.BudgetUSD, "max-budget-usd", 0, "")
	f.IntVar(&s.MaxSteps, "max-steps", 0, "")
	f.IntVar(&s.MaxAttempts, "max-attempts", 0, "")
	f.IntVar(&c.handing.count, "count", 1, "")
	f.StringVar(&c.handing.script, "script", "", "")
}

const (
	maxPrompt = 1 << 20
	maxScript = 1 << 20
	maxCount  = 10_000
)

// submit hands in tasks.
func (c *call) submit(ctx context.Context) error {
	s := &c.handing.spec
	s.Prompt = strings.Join(c.args, " ")
	switch {
	case strings.TrimSpace(s.Prompt) == "" || s.Prompt == "-":
		return usagef(`coder fleet submit needs a task: coder fleet submit "mend the tests" --repo PATH`)
	case len(s.Prompt) > maxPrompt:
		return usagef("the task is longer than %d bytes", maxPrompt)
	case s.Repo == "":
		return usagef("coder fleet submit needs --repo, a path or an address")
	case s.Mode != "" && !slices.Contains(mode.Names(), s.Mode):
		return usagef("--mode must be one of %s, not %q", strings.Join(mode.Names(), ", "), s.Mode)
	case !(s.BudgetUSD >= 0) || s.BudgetUSD > 1e9 || s.MaxSteps < 0 || s.MaxAttempts < 0:
		return usagef("--max-budget-usd, --max-steps and --max-attempts are not negative")
	case c.handing.count < 1 || c.handing.count > maxCount:
		return usagef("--count must be from 1 to %d", maxCount)
	}
	if !strings.Contains(s.Repo, ":") || exists(s.Repo) {
		path, err := filepath.Abs(s.Repo)
		if err != nil {
			return err
		}
		if !exists(path) {
			return usagef("there is no repository %s", path)
		}
		s.Repo = path
	}
	if err := checkout.CheckRepo(s.Repo); err != nil {
		return usageError{err}
	}
	if c.handing.script != "" {
		text, err := repofile.Named(c.handing.script, maxScript)
		if err != nil {
			return fmt.Errorf("read the script: %w", err)
		}
		s.Script = string(text)
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	for range c.handing.count {
		t, err := c.Submit(ctx, app.NewID("task"), *s, c.me())
		if err != nil {
			return err
		}
		fmt.Fprintln(c.Stdout, t.ID)
	}
	return nil
}

func (c *call) psFlags(f *flag.FlagSet) { f.BoolVar(&c.given.all, "all", false, "") }

// shownEnded is how many tasks that have ended are listed unless all are asked for.
const shownEnded = 20

// ps lists the tasks.
func (c *call) ps(ctx context.Context) error {
	if err := c.reach(ctx); err != nil {
		return err
	}
	tasks, err := c.List(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(tasks)
	}
	if len(tasks) == 0 {
		c.say("there are no tasks; coder fleet submit hands one in")
		return nil
	}
	ended := 0
	for _, t := range tasks {
		if t.Status.Ended() {
			ended++
		}
	}
	for _, t := range tasks {
		if t.Status.Ended() && !c.given.all {
			if ended--; ended >= shownEnded {
				continue
			}
		}
		c.row(t)
	}
	return nil
}

func (c *call) row(t queue.Task) {
	line := fmt.Sprintf("%-18s %-9s %5s  %s", t.ID, c.words.T(string(t.Status)), age(c.Now(), t.Created), sanitize.Line(t.Spec.Prompt, 60))
	if t.CostUSD > 0 {
		line += fmt.Sprintf("  $%.4f", t.CostUSD)
	}
	fmt.Fprintln(c.Stdout, line)
	if t.Status == queue.Running {
		fmt.Fprintln(c.Stdout, "    "+c.words.T("with worker %s", oneLine(t.Worker)))
	}
	if t.Reason != "" {
		fmt.Fprintln(c.Stdout, "    "+c.words.Said(sanitize.Line(t.Reason, 300)))
	}
	if t.Result != nil && t.Result.Unknown > 0 {
		fmt.Fprintln(c.Stdout, "    "+c.words.T("calls of unknown outcome: %d", t.Result.Unknown))
	}
	if q := t.Question; q != nil {
		c.question(*q)
	}
}

// question shows what a task waits for.
func (c *call) question(q uip.Request) {
	fmt.Fprintln(c.Stdout, c.words.T("    waits for an answer: %s", sanitize.Reveal(oneLine(c.words.Said(q.Display.Title)))))
	if q.Display.Description != "" {
		fmt.Fprintln(c.Stdout, "      "+sanitize.Reveal(oneLine(c.words.Said(q.Display.Description))))
	}
	how := "--input TEXT"
	if len(q.Options) > 0 {
		var ids []string
		for _, o := range q.Options {
			ids = append(ids, o.ID)
		}
		how = "--option " + strings.Join(ids, "|")
	}
	for _, p := range q.Parts {
		fmt.Fprintln(c.Stdout, "      "+p.ID+": "+sanitize.Reveal(oneLine(p.Display.Title)))
	}
	fmt.Fprintf(c.Stdout, "      coder fleet answer %s %s\n", q.ID, how)
}

func (c *call) printJSON(v any) error {
	_, err := fmt.Fprintf(c.Stdout, "%s\n", jsonx.Must(v))
	return err
}

// listWorkers lists who works.
func (c *call) listWorkers(ctx context.Context) error {
	if err := c.reach(ctx); err != nil {
		return err
	}
	all, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(all)
	}
	for _, w := range all {
		fmt.Fprintf(c.Stdout, "%-24s %d/%d  %s  %s\n", w.Name, w.Busy, w.Slots, w.Version, c.words.Said(w.State))
	}
	return nil
}

// find is the task that an argument names: by its id or by that of its question.
func (c *call) find(ctx context.Context) (queue.Task, error) {
	id, err := c.one("task")
	if err == nil {
		err = c.reach(ctx)
	}
	if err != nil {
		return queue.Task{}, err
	}
	t, err := c.Get(ctx, id)
	if !errors.Is(err, queue.ErrNotFound) {
		return t, err
	}
	all, listErr := c.List(ctx)
	for _, t := range all {
		if t.Question != nil && t.Question.ID == id {
			return t, nil
		}
	}
	return t, cmp.Or(listErr, err)
}

func (c *call) answerFlags(f *flag.FlagSet) {
	f.StringVar(&c.given.option, "option", "", "")
	f.StringVar(&c.given.input, "input", "", "")
	f.StringVar(&c.given.comment, "comment", "", "")
	f.Func("answer", "", func(v string) error {
		if part, option, ok := strings.Cut(v, "="); !ok || part == "" || option == "" {
			return fmt.Errorf("--answer wants PART=ID, not %q", v)
		}
		c.given.parts = append(c.given.parts, v)
		return nil
	})
}

// answer signs an answer and sends it.
func (c *call) answer(ctx context.Context) error {
	t, err := c.find(ctx)
	if err != nil {
		return err
	}
	q := t.Question
	if q == nil || t.Status != queue.Waiting {
		return usagef("task %s waits for no answer: it is %s", t.ID, t.Status)
	}
	r := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: event.ActorUser, Option: c.given.option, Input: c.given.input, Comment: c.given.comment}
	for _, part := range c.given.parts {
		id, option, _ := strings.Cut(part, "=")
		r.Parts = append(r.Parts, uip.Response{ID: id, Option: option})
	}
	if err := uip.Check(*q, r); err != nil {
		return usageError{err}
	}
	key, err := c.personKey()
	if err != nil {
		return err
	}
	a := queue.Answer{Task: t.ID, Question: queue.Sum(*q), Response: r, By: c.me(), At: c.Now().UTC()}
	a.Sign(key)
	if err := c.Verify(ctx, a); err != nil {
		return err
	}
	if err := c.Respond(ctx, a); err != nil {
		return err
	}
	c.say("answered; a worker goes on with task %s", t.ID)
	return nil
}

// cancel ends a task.
func (c *call) cancel(ctx context.Context) error {
	t, err := c.find(ctx)
	if err == nil {
		t, err = c.Cancel(ctx, t.ID, c.me())
	}
	if err != nil {
		return err
	}
	if t.Status == queue.Canceled {
		c.say("task %s is canceled", t.ID)
	} else {
		c.say("task %s is being canceled by its worker", t.ID)
	}
	return nil
}
