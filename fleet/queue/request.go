package queue

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"coder/fleet/jetstore"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"

	"github.com/nats-io/nats.go/jetstream"
)

// Requests are what persons write. Each is a subject that takes one message: nobody
// can change or remove it. Workers read them and write the state.
const (
	requests  = name + ".request."
	cancelEnd = ".cancel"
)

// provisionRequests makes the stream of requests.
func provisionRequests(ctx context.Context, js jetstream.JetStream, replicas int) error {
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name + "-request", Subjects: []string{requests + "*", requests + "*" + cancelEnd}, Replicas: replicas,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		MaxMsgSize: maxEntry, DenyDelete: true,
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return message.Errorf("create the request stream: %w", err)
	}
	return nil
}

// handedIn is a task as its request says: what only workers may say is left out.
func handedIn(id string, text []byte, at time.Time) Task {
	var t Task
	if len(text) > maxEntry || json.Unmarshal(text, &t) != nil || t.ID != id || !ValidTask(id) {
		return broken(id, errors.New("not a task request"), at)
	}
	return t.fresh(at)
}

// fresh is a task as somebody may hand it in.
func (t Task) fresh(at time.Time) Task {
	if t.Created.IsZero() || t.Created.After(at) {
		t.Created = at.UTC()
	}
	return Task{ID: t.ID, Spec: t.Spec, By: t.By, Status: Queued, Created: t.Created, Updated: t.Created}
}

// canceler is who asked for the end of a task, by the text of the request.
func canceler(text []byte) string {
	if by := string(text); ValidName(by) {
		return by
	}
	return "somebody"
}

// canceled is t with the request to cancel it. A task that nobody works on has ended
// with the request.
func (t Task) canceled(by string) Task {
	if t.Status.Ended() {
		return t
	}
	t.Cancel = by
	if t.Status != Running {
		t.Status, t.Reason, t.Question, t.Run = Canceled, "canceled by "+by, nil, ""
	}
	return t
}

// request is the message of a request; nil if there is none.
func (q *Queue) request(ctx context.Context, subject string) (*jetstore.Message, error) {
	return jetstore.Next(ctx, q.js, name+"-request", subject, 1)
}

// ask writes a request once. Where there is one already, that one counts.
func (q *Queue) ask(ctx context.Context, subject string, text []byte) error {
	_, err := q.js.Publish(ctx, subject, text)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == storeFailed && strings.Contains(api.Description, "per subject") {
		return nil
	}
	return err
}

// Cancel asks for the end of a task. One that nobody works on has ended then.
func (q *Queue) Cancel(ctx context.Context, id, by string) (Task, error) {
	t, err := q.Get(ctx, id)
	if err == nil && t.Status.Ended() {
		err = message.Errorf("task %s has ended: %s", id, t.Status)
	}
	if err == nil {
		err = q.ask(ctx, requests+id+cancelEnd, []byte(by))
	}
	if err != nil {
		return t, err
	}
	return q.Get(ctx, id)
}

// asked reads all requests: the tasks handed in, and who canceled which.
func (q *Queue) asked(ctx context.Context) (tasks map[string]Task, cancels map[string]string, err error) {
	tasks, cancels = make(map[string]Task), make(map[string]string)
	for next := uint64(1); ; {
		m, err := jetstore.Next(ctx, q.js, name+"-request", requests+">", next)
		if err != nil || m == nil {
			return tasks, cancels, err
		}
		next = m.Seq + 1
		id := strings.TrimPrefix(m.Subject, requests)
		if of, ok := strings.CutSuffix(id, cancelEnd); ok {
			cancels[of] = canceler(m.Data)
		} else {
			tasks[id] = handedIn(id, m.Data, m.Time)
		}
	}
}

// list is the request of a task that was handed in, for those who look before a
// worker has it.
func (q *Queue) list(ctx context.Context, t Task) {
	_ = q.ask(ctx, requests+t.ID, jsonx.MustMarshal(t))
}
