package queue

import (
	"context"
	"time"
)

// Standing is how the whole of a fleet stands.
type Standing struct {
	At        time.Time      `json:"at"`
	Queue     Depth          `json:"queue"`
	Counts    map[Status]int `json:"counts"` // of all tasks, each status named
	Workers   []WorkerState  `json:"workers"`
	Slots     int            `json:"slots"` // of all workers
	Busy      int            `json:"busy"`
	CostUSD   float64        `json:"cost_usd"`
	Takeovers int            `json:"takeovers"`
	Unknown   int            `json:"unknown_calls"`
	// OldestWait is for how many seconds a task has waited for a person; zero if none does.
	OldestWait float64 `json:"oldest_wait_seconds"`
	Tasks      []Task  `json:"tasks"` // the oldest first
}

// Depth is how long the queue is.
type Depth struct {
	Waiting int   `json:"waiting"` // jobs that no worker has taken yet
	Taken   int   `json:"taken"`
	Limit   int64 `json:"limit"` // beyond which no task is taken in
}

// Statuses are all that there are.
var Statuses = []Status{Queued, Running, Waiting, Done, Failed, Canceled, Aside, Broken}

// Standing looks at the whole of the fleet.
func (q *Queue) Standing(ctx context.Context) (s Standing, err error) {
	s = Standing{At: q.now().UTC(), Counts: make(map[Status]int)}
	if s.Tasks, err = q.List(ctx); err != nil {
		return s, err
	}
	if s.Workers, err = q.Workers(ctx); err != nil {
		return s, err
	}
	info, err := q.jobs.Info(ctx)
	if err != nil {
		return s, err
	}
	s.Queue = Depth{Waiting: int(info.NumPending), Taken: info.NumAckPending, Limit: q.Settings.MaxQueue}
	for _, status := range Statuses {
		s.Counts[status] = 0
	}
	for _, t := range s.Tasks {
		s.Counts[t.Status]++
		s.CostUSD += t.CostUSD
		s.Takeovers += t.Lapsed
		if t.Result != nil {
			s.Unknown += t.Result.Unknown
		}
		if t.Status == Waiting {
			s.OldestWait = max(s.OldestWait, s.At.Sub(t.Updated).Seconds())
		}
	}
	for _, w := range s.Workers {
		s.Slots, s.Busy = s.Slots+w.Slots, s.Busy+w.Busy
	}
	return s, nil
}
