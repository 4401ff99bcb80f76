//go:build unix

package bash

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	"coder/internal/core/display"
	"coder/internal/tool"
)

//go:embed jobs_list.md
var listDoc string

//go:embed job_read.md
var readDoc string

//go:embed job_stop.md
var stopDoc string

// noting is the plan of a call that concerns only what we keep.
func noting(what, target string) tool.Plan {
	return tool.Plan{Title: target, Effects: []tool.Effect{{Kind: tool.Note, Target: target}}, Preview: display.Text(what + " " + target)}
}

type noArgs struct{}

type listResult struct {
	OK   bool      `json:"ok"`
	Jobs []listing `json:"jobs"`
}

type listing struct {
	ID        string `json:"id"`
	Command   string `json:"command"`
	State     state  `json:"state"`
	Running   bool   `json:"running"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	Signal    string `json:"signal,omitzero"`
	Error     string `json:"error,omitzero"`
	Seconds   int64  `json:"seconds,omitzero"` // since it began
	HasOutput bool   `json:"unread_output"`
	LogPath   string `json:"log_path,omitzero"`
}

func (j *Jobs) listTool() tool.Tool {
	return tool.Func[noArgs]{
		Name: "jobs_list", Doc: listDoc, Aliases: []tool.Alias{{Name: "list_jobs"}, {Name: "jobs"}, {Name: "list_shells"}},
		Plan: func(context.Context, noArgs) (tool.Plan, error) { return noting("list", "background jobs"), nil },
		Do: func(context.Context, noArgs, io.Writer) (tool.Result, error) {
			j.mu.Lock()
			defer j.mu.Unlock()
			list := []listing{}
			for _, b := range j.jobs {
				list = append(list, b.listing(j.o.Now))
			}
			return tool.Result{Value: listResult{OK: true, Jobs: list}, Summary: fmt.Sprintf("%d jobs", len(list))}, nil
		},
	}
}

func (b *job) listing(now func() time.Time) listing {
	ended := b.hasEnded()
	b.mu.Lock()
	defer b.mu.Unlock()
	l := listing{ID: b.id, Command: title(b.command), State: b.state(ended), Running: !ended, HasOutput: len(b.unread) > 0, LogPath: b.logPath}
	if now != nil {
		l.Seconds = int64(now().Sub(b.began).Seconds())
	}
	var r jobResult
	if ended {
		b.end(&r)
	}
	l.ExitCode, l.Signal, l.Error = r.ExitCode, r.Signal, r.Error
	return l
}

type readArgs struct {
	ID     string `json:"id" also:"job_id bash_id shell_id job" doc:"which job"`
	WaitMS int    `json:"wait_ms,omitzero" also:"timeout timeout_ms wait" doc:"how many milliseconds to wait for output or the end, at most 60000"`
}

func (j *Jobs) readTool() tool.Tool {
	return tool.Func[readArgs]{
		Name: "job_read", Doc: readDoc, Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "BashOutput"}, {Name: "read_job"}, {Name: "job_output"}, {Name: "get_output"}},
		Plan: func(_ context.Context, a readArgs) (tool.Plan, error) {
			if a.WaitMS < 0 {
				return tool.Plan{}, errors.New("wait_ms must not be negative")
			}
			b, err := j.find(a.ID)
			if err != nil {
				return tool.Plan{}, err
			}
			return noting("read the output of", b.id), nil
		},
		Do: func(ctx context.Context, a readArgs, _ io.Writer) (tool.Result, error) {
			b, err := j.find(a.ID)
			if err != nil {
				return tool.Result{}, err
			}
			b.await(ctx, min(time.Duration(min(a.WaitMS, 1<<31))*time.Millisecond, maxWait))
			if err := ctx.Err(); err != nil {
				return tool.Result{}, err
			}
			return j.report(b), nil
		},
	}
}

type stopArgs struct {
	ID string `json:"id" also:"job_id bash_id shell_id job" doc:"which job"`
}

func (j *Jobs) stopTool() tool.Tool {
	return tool.Func[stopArgs]{
		Name: "job_stop", Doc: stopDoc, Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "KillShell"}, {Name: "KillBash"}, {Name: "stop_job"}, {Name: "kill_job"}},
		Plan: func(_ context.Context, a stopArgs) (tool.Plan, error) {
			b, err := j.find(a.ID)
			if err != nil {
				return tool.Plan{}, err
			}
			return noting("stop "+title(b.command)+",", b.id), nil
		},
		Do: func(ctx context.Context, a stopArgs, _ io.Writer) (tool.Result, error) {
			b, err := j.find(a.ID)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return tool.Result{}, err
			}
			b.stop()
			<-b.done
			return j.report(b), nil
		},
	}
}
