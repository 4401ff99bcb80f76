package toolrun_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"coder/internal/agent/toolrun"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

// fullDisk is a sink that takes no deeds until they are waived.
type fullDisk struct {
	*bench
	waived bool
}

func (d *fullDisk) Emit(ctx context.Context, r event.Record) error {
	if event.ChangesWorld(r.Event) && !d.waived {
		return &event.NotRecordableError{Err: syscall.ENOSPC}
	}
	return d.bench.Emit(ctx, r)
}

// What cannot be put on record does not run, and the model is told why; what only
// reads goes on. A person, if there is one, is asked once.
func TestWhatCannotBePutOnRecordDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		person uip.Interactor // nil: there is none to be asked
		waive  error
		ran    bool
		asked  int
	}{
		"nobody":             {nil, nil, false, 0},
		"a person says no":   {answers(uip.OptionReject), nil, false, 1},
		"a person says yes":  {answers(uip.OptionApprove), nil, true, 1},
		"it cannot be noted": {answers(uip.OptionApprove), syscall.EROFS, false, 1},
		"the question waits": {uip.PendingInteractor, nil, false, 1},
	} {
		b := newBench(t)
		disk := &fullDisk{bench: b}
		b.round.Sink = disk
		asked := 0
		if c.person != nil {
			b.round.User = uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response, error) {
				asked++
				return c.person.Ask(ctx, q)
			})
			b.runner.Waiver = &toolrun.RecordWaiver{Waive: func() error { disk.waived = c.waive == nil; return c.waive }}
		}
		b.add("read", tool.Read, b.fine("read"))
		b.add("write", tool.Write, b.fine("write"))
		log, err := b.run(t.Context(), "write a", "read b", "write c")
		if err != nil {
			t.Errorf("%s: the turn ended: %v", name, err)
		}
		if got := strings.Contains(log, "run write a") && strings.Contains(log, "run write c"); got != c.ran || asked != c.asked || !strings.Contains(log, "run read b") {
			t.Errorf("%s: asked %d times:\n%s", name, asked, log)
		}
		if !c.ran && (strings.Contains(log, "run write") || strings.Count(log, `"denied":true`) != 2 || !strings.Contains(log, "no space left on device")) {
			t.Errorf("%s:\n%s", name, log)
		}
	}
}

func answers(option string) uip.Interactor {
	return uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: option}, nil
	})
}

// What a call would overwrite and cannot be kept counts as not on record.
func TestWhatCannotBeKeptIsNotOverwritten(t *testing.T) {
	b := newBench(t)
	b.runner.Backup = fullKeeper{}
	b.add("write", tool.Write, b.fine("write"))
	log, err := b.run(t.Context(), "write a")
	if err != nil || strings.Contains(log, "run write") || !strings.Contains(log, `"denied":true`) {
		t.Errorf("%v\n%s", err, log)
	}
}

type fullKeeper struct{}

func (fullKeeper) SaveOriginals(context.Context, []tool.Effect) (tool.Snapshot, error) {
	return tool.Snapshot{}, &event.NotRecordableError{Err: syscall.EDQUOT}
}

func (fullKeeper) ChangesSince(context.Context, tool.Snapshot) ([]event.FileChange, error) {
	return nil, errors.New("nothing was kept")
}
