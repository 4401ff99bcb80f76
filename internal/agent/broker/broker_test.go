package broker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"coder/internal/agent/broker"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

func question(id, call string) uip.Request {
	return uip.Request{
		ID: id, TaskID: "t", Author: "main", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction,
		Display: uip.Display{Title: "bash rm x", Metadata: map[string]string{"toolCallId": call}},
		Options: []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionReject}},
	}
}

// transcript is a sink that writes one line per event.
type transcript struct{ strings.Builder }

func (tr *transcript) Emit(_ context.Context, r event.Record) error {
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		fmt.Fprintf(tr, "asked %s\n", e.ID)
	case event.InteractionResponded:
		fmt.Fprintf(tr, "answered %s %s by %s\n", e.ID, e.Option, e.Author)
	case event.Notice:
		fmt.Fprintf(tr, "said %s\n", e.Text)
	}
	return nil
}

func answers(option string) uip.Interactor {
	return uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: option}, nil
	})
}

func TestEveryQuestionIsOnRecordBeforeItIsAskedAndClosedAfter(t *testing.T) {
	wrong := uip.InteractorFunc(func(context.Context, uip.Request) (uip.Response, error) {
		return uip.Response{ID: "another", Author: "user", Option: uip.OptionApprove}, nil
	})
	tests := []struct {
		name   string
		person uip.Interactor
		option string
		want   string
	}{
		{"yes", answers(uip.OptionApprove), uip.OptionApprove, "asked q1\nanswered q1 approve by user\n"},
		{"no", answers(uip.OptionReject), uip.OptionReject, "asked q1\nanswered q1 reject by user\n"},
		{"nobody there", uip.NoInteractor, uip.OptionReject, "asked q1\nanswered q1 reject by nobody\n"},
		{"an option that was not offered", answers(uip.OptionAlways), uip.OptionReject, "asked q1\nanswered q1 reject by broker\n"},
		{"an answer to another question", wrong, uip.OptionReject, "asked q1\nanswered q1 reject by broker\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log transcript
			a, err := broker.New(tt.person).WithSink(&log).Ask(t.Context(), question("q1", "c1"))
			if err != nil || a.Option != tt.option {
				t.Errorf("got %+v, %v; want %s", a, err, tt.option)
			}
			if log.String() != tt.want {
				t.Errorf("record:\n%swant:\n%s", log.String(), tt.want)
			}
		})
	}
}

func TestNothingIsAskedThatCannotBeRecorded(t *testing.T) {
	full := errors.New("disk full")
	asked := false
	b := broker.New(uip.InteractorFunc(func(context.Context, uip.Request) (uip.Response, error) {
		asked = true
		return uip.Response{}, nil
	}))
	sink := event.SinkFunc(func(context.Context, event.Record) error { return full })
	if _, err := b.WithSink(sink).Ask(t.Context(), question("q1", "c1")); !errors.Is(err, full) || asked {
		t.Errorf("err %v, asked %v; want the sink's error and no question", err, asked)
	}
}

func TestAQuestionFromBeforeIsPutAgainUnderItsOwnID(t *testing.T) {
	var log transcript
	b := broker.New(answers(uip.OptionApprove))
	recall(b, question("old", "c1"), nil)
	a, err := b.WithSink(&log).Ask(t.Context(), question("new", "c1"))
	if err != nil || a.ID != "new" || log.String() != "answered old approve by user\n" {
		t.Errorf("got %+v, %v, record %q", a, err, log.String())
	}
	if a, _ := b.WithSink(&log).Ask(t.Context(), question("next", "c2")); a.ID != "next" {
		t.Errorf("another call got the answer of %s", a.ID)
	}
}

func TestAnAnswerFromBeforeCountsOnceAndForItsCallOnly(t *testing.T) {
	var log transcript
	b := broker.New(answers(uip.OptionReject))
	recall(b, question("old", "c1"), &uip.Response{ID: "old", Author: "user", Option: uip.OptionApprove})
	on := b.WithSink(&log)
	if a, _ := on.Ask(t.Context(), question("q2", "c2")); a.Option != uip.OptionReject {
		t.Errorf("call c2 got %+v", a)
	}
	if a, _ := on.Ask(t.Context(), question("q1", "c1")); a.Option != uip.OptionApprove {
		t.Errorf("call c1 got %+v", a)
	}
	if a, _ := on.Ask(t.Context(), question("q3", "c1")); a.Option != uip.OptionReject {
		t.Errorf("the old answer counted twice: %+v", a)
	}
}

func TestOneQuestionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := 0
		release := make(chan struct{})
		b := broker.New(uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			open++
			<-release
			return uip.Response{ID: q.ID, Option: uip.OptionApprove}, nil
		}))
		for i := range 3 {
			go func() { _, _ = b.WithSink(event.Discard).Ask(t.Context(), question(fmt.Sprint(i), fmt.Sprint(i))) }()
		}
		for want := 1; want <= 3; want++ {
			synctest.Wait()
			if open != want {
				t.Fatalf("%d questions are open, want %d", open, want)
			}
			release <- struct{}{}
		}
	})
}

func TestAWithdrawnQuestionGivesTheContextsError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var log transcript
	b := broker.New(uip.InteractorFunc(func(ctx context.Context, _ uip.Request) (uip.Response, error) {
		cancel()
		return uip.Response{}, ctx.Err()
	}))
	if _, err := b.WithSink(&log).Ask(ctx, question("q1", "c1")); err != context.Canceled {
		t.Errorf("err = %v, want context.Canceled itself", err)
	}
	if log.String() != "asked q1\n" {
		t.Errorf("record: %q", log.String())
	}
}

func card(id string, calls ...string) uip.Request {
	q := uip.Request{ID: id, TaskID: "t", Author: "main", Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction, Options: []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionReject}}}
	for i, c := range calls {
		q.Parts = append(q.Parts, question(fmt.Sprintf("%s.%d", id, i+1), c))
	}
	return q
}

func TestACardFromBeforeIsPutAgainWholeAndAnswersItsCallsOnce(t *testing.T) {
	var log transcript
	var put []string
	b := broker.New(uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		put = append(put, q.ID)
		a := uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}
		if len(q.Parts) > 1 {
			a.Parts = []uip.Response{{ID: q.Parts[1].ID, Option: uip.OptionReject}}
		}
		return a, nil
	}))
	recall(b, card("old", "c1", "c2"), nil)
	on := b.WithSink(&log)
	q := card("new", "c1", "c2")
	a, err := on.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.PartAnswer(q.Parts[0]).Option + " " + a.PartAnswer(q.Parts[1]).Option; got != "approve reject" || strings.Join(put, " ") != "old" {
		t.Errorf("answers %q, put %q", got, put)
	}
	if want := "answered old approve by user\n"; log.String() != want {
		t.Errorf("record:\n%s", log.String())
	}
	if b, _ := on.Ask(t.Context(), question("next", "c1")); b.ID != "next" {
		t.Errorf("the old answer counted twice: %+v", b)
	}
}

func TestAnAnsweredCardFromBeforeAnswersEachCallByItself(t *testing.T) {
	var log transcript
	b := broker.New(answers(uip.OptionReject))
	old := card("old", "c1", "c2")
	recall(b, old, &uip.Response{ID: "old", Author: "user", Option: uip.OptionApprove})
	for _, call := range []string{"c2", "c1"} {
		if a, err := b.WithSink(&log).Ask(t.Context(), question("q", call)); err != nil || a.Option != uip.OptionApprove {
			t.Errorf("%s: %+v, %v", call, a, err)
		}
	}
	if log.String() != "" {
		t.Errorf("recorded again: %q", log.String())
	}
}

func TestAParkedQuestionIsOnRecordAndStaysOpen(t *testing.T) {
	var log transcript
	_, err := broker.New(uip.PendingInteractor).WithSink(&log).Ask(t.Context(), question("q1", "c1"))
	if !errors.Is(err, uip.ErrAnswerPending) || log.String() != "asked q1\n" {
		t.Errorf("err %v, record %q", err, log.String())
	}
}

func TestAQuestionThatIsNoLongerTheOneToAskIsVoid(t *testing.T) {
	edited := func(change func(*uip.Request)) uip.Request {
		q := question("old", "c1")
		change(&q)
		return q
	}
	yes := &uip.Response{ID: "old", Author: "user", Option: uip.OptionApprove}
	const again = "asked new\nanswered new reject by user\n"
	for name, tt := range map[string]struct {
		stored uip.Request
		answer *uip.Response
		want   string
	}{
		"another title":             {edited(func(q *uip.Request) { q.Display.Title = "bash go test ./..." }), nil, "answered old reject by broker\n" + again},
		"another preview":           {edited(func(q *uip.Request) { q.Display.Content = display.Text("ls") }), nil, "answered old reject by broker\n" + again},
		"another call":              {edited(func(q *uip.Request) { q.Digest = "ff" }), nil, "answered old reject by broker\n" + again},
		"an option more":            {edited(func(q *uip.Request) { q.Options = append(q.Options, uip.Option{ID: uip.OptionAlways}) }), nil, "answered old reject by broker\n" + again},
		"a card":                    {card("old", "c1", "c2"), nil, "answered old reject by broker\n" + again},
		"an answer to another call": {edited(func(q *uip.Request) { q.Digest = "ff" }), yes, again},
	} {
		t.Run(name, func(t *testing.T) {
			var log transcript
			var shown uip.Request
			b := broker.New(uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
				shown = q
				return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionReject}, nil
			}))
			recall(b, tt.stored, tt.answer)
			a, err := b.WithSink(&log).Ask(t.Context(), question("new", "c1"))
			if err != nil || a.Option != uip.OptionReject || !shown.IsSame(question("", "c1")) {
				t.Errorf("%+v, %v, shown %+v", a, err, shown)
			}
			said := "said the recorded question about bash rm x is void: the call has changed and needs approval again\n"
			if got := strings.Replace(log.String(), said, "", 1); got != tt.want || got == log.String() {
				t.Errorf("record:\n%s", log.String())
			}
		})
	}
}

func TestACardIsAnsweredCallByCallAsFarAsTheCallsAreTheSame(t *testing.T) {
	stored := card("old", "c1", "c2", "c3")
	stored.Parts[1].Display.Title = "bash rm y"
	b := broker.New(answers(uip.OptionReject))
	recall(b, stored, &uip.Response{ID: "old", Author: "user", Option: uip.OptionApprove})
	q := card("new", "c1", "c2", "c3")
	a, err := b.WithSink(new(transcript)).Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{uip.OptionApprove, uip.OptionReject, uip.OptionApprove} {
		if got := a.PartAnswer(q.Parts[i]).Option; got != want {
			t.Errorf("call %d: %s, want %s", i+1, got, want)
		}
	}
}

func TestTheAnswersOfAToolsOwnCardReachItUnderItsIDs(t *testing.T) {
	asks := func(id string) uip.Request {
		return card(id, "", "").BindToCall("c1")
	}
	answer := uip.Response{ID: "old", Author: "user", Parts: []uip.Response{{ID: "old.1", Option: uip.OptionApprove}, {ID: "old.2", Option: uip.OptionReject}}}
	for name, given := range map[string]*uip.Response{"answered before": &answer, "put again": nil} {
		b := broker.New(uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) { return answer, nil }))
		recall(b, asks("old"), given)
		q := asks("new")
		a, err := b.WithSink(new(transcript)).Ask(t.Context(), q)
		if err != nil || a.PartAnswer(q.Parts[0]).Option != uip.OptionApprove || a.PartAnswer(q.Parts[1]).Option != uip.OptionReject {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// recall tells b that q was the last that was asked about all its calls.
func recall(b *broker.Broker, q uip.Request, a *uip.Response) {
	if q.CallID() != "" {
		b.Restore(q.CallID(), q, a)
		return
	}
	for _, part := range q.Parts {
		b.Restore(part.CallID(), q, a)
	}
}

// TestTheLastQuestionAboutACallCounts whichever calls the one before was also
// about, in whatever order they are recalled; and a question that was found void
// answers none of its calls.
func TestTheLastQuestionAboutACallCounts(t *testing.T) {
	for _, by := range []string{"user", broker.ActorBroker} {
		first, last := card("first", "c1", "c2", "c3"), question("last", "c2")
		answer := &uip.Response{ID: "first", Author: by, Option: uip.OptionReject}
		var asked []string
		b := broker.New(uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			asked = append(asked, q.ID)
			return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
		}))
		b.Restore("c1", first, answer)
		b.Restore("c2", last, nil)
		b.Restore("c3", first, answer)
		if a, err := b.WithSink(event.Discard).Ask(t.Context(), question("new", "c2")); err != nil || a.Option != uip.OptionApprove {
			t.Errorf("%s: %+v, %v", by, a, err)
		}
		if len(asked) != 1 || asked[0] != "last" {
			t.Errorf("%s: asked %q, want the open question", by, asked)
		}
		a, err := b.WithSink(event.Discard).Ask(t.Context(), first.Parts[2])
		if again := len(asked) == 2; err != nil || again != (by == broker.ActorBroker) || (a.Option == uip.OptionApprove) != again {
			t.Errorf("%s: %+v, %v; asked %q", by, a, err, asked)
		}
	}
}
