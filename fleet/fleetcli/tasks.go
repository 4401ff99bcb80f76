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
	"time"

	"coder/fleet/checkout"
	"coder/fleet/queue"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/host/repofile"
	"coder/internal/host/worktree"
	"coder/internal/policy/mode"
	"coder/internal/ui/term"
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
	about                  string // the folder whose tasks are wanted
	listen                 string
	older                  time.Duration // what prune looks for
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

func (c *call) checkSubmit() error {
	s := &c.handing.spec
	s.Prompt = strings.Join(c.args, " ")
	switch {
	case strings.TrimSpace(s.Prompt) == "" || s.Prompt == "-":
		return usagef(`coder fleet submit needs a task: coder fleet submit "fix the tests" --repo PATH`)
	case len(s.Prompt) > maxPrompt:
		return usagef("the task is longer than %d bytes", maxPrompt)
	case s.Repo == "":
		return usagef("coder fleet submit needs --repo, a path or an address")
	case s.Mode != "" && !slices.Contains(mode.Names(), s.Mode):
		return usagef("--mode must be one of %s, not %q", strings.Join(mode.Names(), ", "), s.Mode)
	case !(s.BudgetUSD >= 0) || s.BudgetUSD > 1e9 || s.MaxSteps < 0 || s.MaxAttempts < 0:
		return usagef("--max-budget-usd, --max-steps and --max-attempts must not be negative")
	case c.handing.count < 1 || c.handing.count > maxCount:
		return usagef("--count must be from 1 to %d", maxCount)
	}
	if !strings.Contains(s.Repo, ":") || exists(s.Repo) {
		path, err := filepath.Abs(s.Repo)
		if err != nil {
			return err
		}
		if !exists(path) {
			return usagef("repository %s does not exist", path)
		}
		s.Repo = path
	}
	if err := worktree.CheckRepo(s.Repo); err != nil {
		return usageError{err}
	}
	if filepath.IsAbs(s.Repo) {
		top, dirty, err := checkout.Look(context.Background(), s.Repo, s.Base, c.door())
		if err != nil {
			return usageError{err}
		}
		if s.Repo = top; dirty {
			c.warn("uncommitted changes in %s are not included: a task starts from a commit", top)
		}
	}
	if c.handing.script != "" {
		text, err := repofile.ReadNamed(c.handing.script, maxScript)
		if err != nil {
			return usagef("read the script: %w", err)
		}
		s.Script = string(text)
	}
	return nil
}

// submit hands in tasks.
func (c *call) submit(ctx context.Context) error {
	for range c.handing.count {
		t, err := c.Submit(ctx, app.NewID("task"), c.handing.spec, c.me())
		if err != nil {
			return err
		}
		fmt.Fprintln(c.Stdout, t.ID)
	}
	return nil
}

func (c *call) allFlag(f *flag.FlagSet) { f.BoolVar(&c.given.all, "all", false, "") }

func (c *call) psFlags(f *flag.FlagSet) {
	c.allFlag(f)
	f.StringVar(&c.given.about, "about", "", "")
}

// shownEnded is how many tasks that have ended are listed unless all are asked for.
const shownEnded = 20

// ps lists the tasks, or shows one.
func (c *call) ps(ctx context.Context) error {
	if len(c.args) > 0 {
		return c.whole(ctx)
	}
	tasks, err := c.List(ctx)
	if err != nil {
		return err
	}
	if c.given.about != "" {
		about := checkout.About(ctx, c.given.about, c.door())
		tasks = slices.DeleteFunc(tasks, func(t queue.Task) bool { return !about(t.Spec.Repo) })
	}
	if c.json {
		return c.printJSON(tasks)
	}
	if len(tasks) == 0 {
		c.say("no tasks; coder fleet submit adds one")
		return nil
	}
	shown := c.latest(tasks, shownEnded)
	for _, t := range shown {
		c.row(t)
	}
	if more := len(tasks) - len(shown); more > 0 {
		c.say("and %d that ended earlier; --all lists them", more)
	}
	return nil
}

// latest are the tasks without all but the last few of those that have ended,
// unless all are asked for.
func (c *call) latest(tasks []queue.Task, few int) []queue.Task {
	if c.given.all {
		return tasks
	}
	kept := []queue.Task{}
	for _, t := range slices.Backward(tasks) {
		if t.Status.Ended() {
			if few--; few < 0 {
				continue
			}
		}
		kept = append(kept, t)
	}
	slices.Reverse(kept)
	return kept
}

func (c *call) row(t queue.Task) {
	line := fmt.Sprintf("%-18s %-9s %5s  %s", oneLine(t.ID), c.words.T(string(t.Status)), age(c.Now(), t.Created),
		sanitize.Line(t.Spec.Prompt, 60))
	if t.CostUSD > 0 {
		line += fmt.Sprintf("  $%.4f", t.CostUSD)
	}
	fmt.Fprintln(c.Stdout, line)
	if t.Status == queue.Running {
		fmt.Fprintln(c.Stdout, "    "+c.words.T("on worker %s", oneLine(t.Worker)))
	}
	if t.Reason != "" {
		fmt.Fprintln(c.Stdout, "    "+c.words.TranslateText(sanitize.Line(t.Reason, 300)))
	}
	if t.Result != nil && t.Result.Unknown > 0 {
		fmt.Fprintln(c.Stdout, "    "+c.words.T("calls with unknown outcome: %d", t.Result.Unknown))
	}
	if q := t.Question; q != nil {
		c.question(*q)
	}
}

// question shows what a task waits for.
func (c *call) question(q uip.Request) {
	title := q.Display.Title
	if q.HasOwnTitle() {
		title = c.words.TranslateText(title)
	}
	fmt.Fprintln(c.Stdout, c.words.T("    waiting for an answer: %s", sanitize.Reveal(oneLine(title))))
	if q.Display.Description != "" {
		fmt.Fprintln(c.Stdout, "      "+sanitize.Reveal(oneLine(c.words.TranslateText(q.Display.Description))))
	}
	how := "--input TEXT"
	if ids := optionIDs(q); ids != "" {
		how = "--option " + ids
	}
	for _, p := range q.Parts {
		fmt.Fprintln(c.Stdout, "      "+p.ID+": "+sanitize.Reveal(oneLine(p.Display.Title)))
	}
	if q.Display.Content != nil || len(q.Parts) > 0 {
		fmt.Fprintln(c.Stdout, "      "+c.words.T("details: coder fleet ps %s", q.ID))
	}
	fmt.Fprintf(c.Stdout, "      coder fleet answer %s %s\n", q.ID, how)
}

func optionIDs(q uip.Request) string {
	var ids []string
	for _, o := range q.Options {
		ids = append(ids, o.ID)
	}
	return strings.Join(ids, "|")
}

// whole shows all of one task, and of what it waits for.
func (c *call) whole(ctx context.Context) error {
	t, err := c.find(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(t)
	}
	c.row(t)
	c.say("repository: %s %s", oneLine(t.Spec.Repo), oneLine(cmp.Or(t.Commit, t.Spec.Base)))
	fmt.Fprintln(c.Stdout, sanitize.Text(t.Spec.Prompt))
	if t.Question == nil {
		return nil
	}
	fmt.Fprintln(c.Stdout, term.Cards{Translator: c.words, NoFold: true}.Draw(*t.Question))
	for _, o := range t.Question.Options {
		fmt.Fprintf(c.Stdout, "  --option %s: %s\n", o.ID, oneLine(c.words.TranslateText(o.Label)))
	}
	return nil
}

// statusEnded is how many tasks that have ended status tells programs of.
const statusEnded = 100

// status tells how the whole of the fleet stands.
func (c *call) status(ctx context.Context) error {
	s, err := c.Standing(ctx)
	if err != nil {
		return err
	}
	if c.json {
		s.Tasks = slices.Clone(c.latest(s.Tasks, statusEnded))
		for i := range s.Tasks {
			s.Tasks[i].Spec.Script = "" // it may be long, and is no news
		}
		return c.printJSON(s)
	}
	c.say("queue: %d waiting for a worker, %d with one", s.Queue.Waiting, s.Queue.Taken)
	c.say("workers: %d, with %d of %d slots in use", len(s.Workers), s.Busy, s.Slots)
	var counts []string
	for _, status := range queue.Statuses {
		if n := s.Counts[status]; n > 0 {
			counts = append(counts, fmt.Sprintf("%s %d", c.words.T(string(status)), n))
		}
	}
	c.say("tasks: %s", cmp.Or(strings.Join(counts, ", "), "0"))
	c.say("cost: %s; taken over: %d; calls with unknown outcome: %d", fmt.Sprintf("$%.4f", s.CostUSD), s.Takeovers,
		s.Unknown)
	for _, t := range s.Tasks {
		if t.Status == queue.Waiting {
			c.row(t)
		}
	}
	return nil
}

func (c *call) printJSON(v any) error {
	_, err := fmt.Fprintf(c.Stdout, "%s\n", jsonx.MustMarshal(v))
	return err
}

// listWorkers lists who works.
func (c *call) listWorkers(ctx context.Context) error {
	all, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(all)
	}
	for _, w := range all {
		fmt.Fprintf(c.Stdout, "%-24s %d/%d  %s  %s\n", oneLine(w.Name), w.Busy, w.Slots, oneLine(w.Version),
			oneLine(c.words.TranslateText(w.State)))
	}
	return nil
}

// find returns the task that the first argument names.
func (c *call) find(ctx context.Context) (queue.Task, error) { return c.named(ctx, c.args[0]) }

// named is the task of this name: its own id, or that of its question.
func (c *call) named(ctx context.Context, id string) (queue.Task, error) {
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
	f.Func("hunks", "", func(v string) error {
		c.given.option, c.given.input = uip.OptionSome, v
		return nil
	})
	f.Func("answer", "", func(v string) error {
		if part, option, ok := strings.Cut(v, "="); !ok || part == "" || option == "" {
			return message.Errorf("--answer must be PART=ID, not %q", v)
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
		return usagef("task %s is not waiting for an answer: it is %s", t.ID, c.words.T(string(t.Status)))
	}
	r := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: event.ActorUser, Option: c.given.option, Input: c.given.input,
		Comment: c.given.comment}
	for _, part := range c.given.parts {
		id, option, _ := strings.Cut(part, "=")
		r.Parts = append(r.Parts, uip.Response{ID: id, Option: option})
	}
	if err := uip.CheckResponse(*q, r); err != nil {
		if ids := optionIDs(*q); ids != "" {
			err = message.Errorf("%w; the options are %s", err, ids)
		}
		return usageError{err}
	}
	key, err := c.personKey()
	if err != nil {
		return err
	}
	a := queue.Answer{Task: t.ID, Question: queue.Sum(*q), Response: r, By: c.me(), At: c.Now().UTC()}
	a.Sign(key)
	if err := c.Verify(ctx, a); errors.Is(err, queue.ErrUnsigned) {
		return message.Errorf("%w; an admin can let you answer with: coder fleet enroll %s %s (CODER_FLEET_USER changes your name)", err, a.By, public(key))
	} else if err != nil {
		return err
	}
	if err := c.Respond(ctx, a); err != nil {
		return err
	}
	c.say("answered; a worker continues task %s", t.ID)
	return nil
}

// cancel ends tasks. One that cannot be ended keeps none of the others.
func (c *call) cancel(ctx context.Context) (failed error) {
	for _, id := range c.args {
		t, err := c.named(ctx, id)
		if err == nil {
			t, err = c.Cancel(ctx, t.ID, c.me())
		}
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case t.Status == queue.Canceled:
			c.say("task %s is canceled", t.ID)
		default:
			c.say("task %s is being canceled by its worker", t.ID)
		}
	}
	return failed
}
