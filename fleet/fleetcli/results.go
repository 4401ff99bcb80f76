package fleetcli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"coder/fleet/checkout"
	"coder/fleet/queue"
	"coder/fleet/worker"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/atomicfile"
	"coder/internal/host/authkey"
)

func (c *call) resultFlags(f *flag.FlagSet) {
	f.BoolVar(&c.given.patch, "patch", false, "")
	f.BoolVar(&c.given.branch, "branch", false, "")
}

// result shows what came of a task.
func (c *call) result(ctx context.Context) error {
	t, err := c.find(ctx)
	if err != nil {
		return err
	}
	r := t.Result
	switch {
	case c.json:
		return c.printJSON(t)
	case r == nil:
		return c.unfinished(ctx, t)
	case (c.given.patch || c.given.branch) && r.Branch == "":
		return usagef("task %s changed no files", t.ID)
	case c.given.patch:
		return c.Fetch(ctx, r.Patch, c.Stdout)
	case c.given.branch:
		if t.Unsealed {
			c.tell(t.Reason)
		}
		return c.fetchBranch(ctx, t.ID, r.Bundle, "refs/heads/"+queue.Branch(t.ID))
	}
	c.row(t)
	if r.Answer != "" {
		fmt.Fprintln(c.Stdout, sanitize.Text(r.Answer))
	}
	if r.Branch != "" {
		c.say("branch %s, commit %s on %s; coder fleet result %s --patch or --branch fetches it", r.Branch, oneLine(r.Commit),
			oneLine(t.Commit), t.ID)
	} else {
		c.say("no files changed")
	}
	switch {
	case r.Check == "":
		c.say("no check ran")
	case r.Verified:
		c.say("checked: %s (exit code %d)", oneLine(r.Check), r.CheckExit)
	default:
		c.say("check incomplete: %s (exit code %d)", oneLine(r.Check), r.CheckExit)
	}
	c.say("records: %d, calls: %d, refused: %d, unknown outcome: %d", r.Records, r.Calls, r.Refused, r.Unknown)
	for _, d := range r.Decisions {
		by := d.By
		if d.Signed {
			by = c.words.T("%s, signed", d.By)
		}
		fmt.Fprintf(c.Stdout, "  %s: %s (%s)\n", oneLine(c.words.TranslateText(d.Title)), oneLine(d.Option), oneLine(by))
	}
	return nil
}

// unfinished is about a task that did not come to its end, or has not yet: its files
// are those of its last checkpoint.
func (c *call) unfinished(ctx context.Context, t queue.Task) error {
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	tip, err := s.Tip(ctx, t.ID)
	switch status := c.words.T(string(t.Status)); {
	case err != nil:
		return err
	case tip.Checkpoint == "":
		return usagef("task %s has no result: it is %s", t.ID, status)
	case !c.given.branch:
		return usagef("task %s has no result: it is %s; coder fleet result %[1]s --branch fetches the files of its last checkpoint", t.ID, status)
	}
	return c.fetchBranch(ctx, t.ID, tip.Checkpoint, checkout.CheckpointRef)
}

// fetchBranch makes a ref of a bundle the branch of a task in the repository here,
// and writes no other.
func (c *call) fetchBranch(ctx context.Context, task, from, ref string) error {
	if !queue.ValidTask(task) {
		return usagef("%s is not a valid branch name", oneLine(task))
	}
	branch := queue.Branch(task)
	var bundle bytes.Buffer
	if err := c.Fetch(ctx, from, &bundle); err != nil {
		return err
	}
	file := filepath.Join(c.dir, fmt.Sprintf("%d.bundle", os.Getpid()))
	if err := atomicfile.Write(file, bundle.Bytes(), 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	git, err := c.door().Git(ctx, c.Dir)
	if err != nil {
		return err
	}
	cmd := git.Command(ctx, "fetch", "--quiet", "--no-tags", "--", file, ref+":refs/heads/"+branch)
	cmd.Env = append(cmd.Env, "GIT_ALLOW_PROTOCOL=file")
	if out, err := cmd.CombinedOutput(); err != nil {
		return message.Errorf("fetch the branch into %s: %w: %s", c.Dir, err, sanitize.Line(string(out), 300))
	}
	c.say("fetched branch %s", branch)
	return nil
}

// verify checks logs against the seals of the fleet.
func (c *call) verify(ctx context.Context) error {
	tasks, err := c.List(ctx)
	if len(c.args) > 0 && err == nil {
		var t queue.Task
		t, err = c.find(ctx)
		tasks = []queue.Task{t}
	}
	if err != nil {
		return err
	}
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	if !c.Seals() {
		return queue.ErrOtherKey
	}
	key, err := authkey.Open(c.dir)
	if err != nil {
		return err
	}
	checked, bad := 0, 0
	for _, t := range tasks {
		if len(c.args) == 0 && !t.Status.Ended() {
			continue
		}
		checked++
		n, err := worker.Verify(s.Read(ctx, t.ID, 0), key, t.ID)
		if t.Unsealed || t.Status == queue.Broken {
			err = errors.New(t.Reason)
		}
		if err == nil && t.Result != nil && n < t.Result.Records {
			err = message.Errorf("found %d records, but the result covers %d", n, t.Result.Records)
		}
		if err != nil {
			bad++
			fmt.Fprintln(c.Stdout, oneLine(t.ID)+": "+c.words.TranslateError(err))
		}
	}
	c.say("logs checked: %d, incomplete: %d", checked, bad)
	if bad > 0 {
		return errors.New("some logs are incomplete")
	}
	return nil
}
