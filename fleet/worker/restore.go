package worker

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"coder/fleet/jetstore"
	"coder/fleet/queue"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/authkey"
	"coder/internal/host/repofile"
	"coder/internal/record/store/jsonl"
)

// taskFile is where a process that works on a task says beside its log what the
// task is.
const taskFile = "task.json"

// Restored is what became of one task of which a worker's disk holds a log.
type Restored struct {
	ID    string
	Added uint64 // records that the fleet did not have
	Err   error
}

// Restore fills the logs of a fleet that lost some of what it had from those that
// the workers of this machine kept. It only adds what follows: where the two are
// not the same, or nothing says that there was more, nothing is done. A task that had not ended is set aside, since its
// files may be older than its log.
func Restore(ctx context.Context, q *queue.Queue, logs *jetstore.Store, here, fleet *authkey.Key) (all []Restored,
	err error) {
	root := filepath.Join(q.Settings.Work, logsName)
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, message.Errorf("list the logs of this machine: %w", err)
	}
	for _, e := range entries {
		r := Restored{ID: e.Name()}
		seals := sealing{here: here, fleet: fleet, root: workIn(filepath.Join(q.Settings.Work, r.ID)), id: r.ID}
		if run := longest(ctx, filepath.Join(root, r.ID)); run != "" {
			r.Added, r.Err = restore(ctx, q, logs, run, seals)
		}
		if r.Added > 0 || r.Err != nil {
			all = append(all, r)
		}
	}
	return all, ctx.Err()
}

// longest is the folder of the run of a task that has most of its log.
func longest(ctx context.Context, dir string) (best string) {
	runs, _ := os.ReadDir(dir)
	most := 0
	for _, run := range runs {
		n := 0
		for _, err := range jsonl.Open(dir, jsonl.Options{}).Read(ctx, run.Name(), 0) {
			if err == nil {
				n++
			}
		}
		if n > most {
			best, most = filepath.Join(dir, run.Name()), n
		}
	}
	return best
}

// restore adds what one log on this disk has beyond the fleet's.
func restore(ctx context.Context, q *queue.Queue, logs *jetstore.Store, dir string, seals sealing) (added uint64,
	err error) {
	tip, err := logs.Tip(ctx, seals.id)
	if err != nil {
		return 0, err
	}
	// The store names a session by its folder, which here is that of a run.
	mine := jsonl.Open(filepath.Dir(dir), jsonl.Options{})
	out := seals.outward()
	var missing []event.Record
	for r, err := range mine.Read(ctx, filepath.Base(dir), 0) {
		if err != nil {
			return 0, err
		}
		if r = out.translate(r); r.Seq > tip.Last {
			missing = append(missing, r)
		}
	}
	if lost, err := lost(ctx, q, seals.id, tip.Last); len(missing) == 0 || !lost {
		return 0, err
	}
	for r, err := range logs.Read(ctx, seals.id, max(tip.Last, 1)-1) { // the last one of both
		if err != nil {
			return 0, err
		}
		if err := follows(ctx, mine, filepath.Base(dir), r); err != nil {
			return 0, err
		}
	}
	release, err := logs.Claim(ctx, seals.id)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	for _, r := range missing {
		if err := logs.Append(ctx, r.Seq-1, r); err != nil {
			return added, err
		}
		added++
	}
	return added, setAside(ctx, q, logs, dir, seals.id)
}

// lost reports whether it is known that the fleet had more of a task than the
// records up to last: a record that only a worker has may be one that was refused.
func lost(ctx context.Context, q *queue.Queue, id string, last uint64) (bool, error) {
	t, err := q.Get(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return true, nil
	}
	return err == nil && (t.Taken == 0 || t.Result != nil && t.Result.Records > last), err
}

// follows makes sure that a record of the fleet is also the one on this disk.
func follows(ctx context.Context, mine event.Store, session string, r event.Record) error {
	for own, err := range mine.Read(ctx, session, r.Seq-1) {
		if err != nil {
			return err
		}
		own.Seal, r.Seal = "", ""
		a, errA := event.Encode(own)
		b, errB := event.Encode(r)
		if errA != nil || errB != nil || string(a) != string(b) {
			return message.Errorf("record %d differs between the fleet and this disk", r.Seq)
		}
		return nil
	}
	return nil
}

// setAside has the document of a task say what its log says, as far as that can be
// known without its files.
func setAside(ctx context.Context, q *queue.Queue, logs *jetstore.Store, dir, id string) error {
	v, err := foldLog(logs.Read(ctx, id, 0))
	if err != nil {
		return err
	}
	var job queue.Job
	text, err := repofile.ReadOwn(filepath.Join(dir, taskFile), 4<<20)
	if err == nil {
		err = json.Unmarshal(text, &job.Task)
	}
	if err != nil {
		return message.Errorf("the original task is unknown: %w", err)
	}
	if _, err := q.Ensure(ctx, job); err != nil {
		return err
	}
	_, err = q.Change(ctx, id, func(t *queue.Task) error {
		if t.Status.Ended() {
			return nil
		}
		t.Status, t.Run, t.Question, t.CostUSD = queue.Aside, "", nil, v.cost
		t.Reason = "the log was restored from a worker's disk; the files may be older"
		t.Result = &v.result
		return nil
	})
	return err
}
