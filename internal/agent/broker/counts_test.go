package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"coder/internal/agent/broker"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// asked is a person who says one thing and remembers the questions.
func asked(option string, put *[]uip.Request) uip.Interactor {
	return uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		*put = append(*put, q)
		return uip.Response{ID: q.ID, Author: "user", Option: option}, nil
	})
}

func yes(id string, parts ...uip.Response) *uip.Response {
	return &uip.Response{ID: id, Author: "user", Option: uip.OptionApprove, Parts: parts}
}

func TestAYesOfNobodyIsNone(t *testing.T) {
	b := broker.New(uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		a := uip.NoAnswer(q)
		a.Option = uip.OptionApprove
		return a, nil
	}))
	if a, err := b.WithSink(event.Discard).Ask(t.Context(), question("q1", "c1")); err != nil || a.Option != uip.OptionReject || a.TaskID != "t" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAnAnswerThatFailsIsNone(t *testing.T) {
	boom := errors.New("boom")
	var log transcript
	b := broker.New(uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) { return *yes(q.ID), boom }))
	if a, err := b.WithSink(&log).Ask(t.Context(), question("q1", "c1")); !errors.Is(err, boom) || a.Option != "" || log.String() != "asked q1\n" {
		t.Errorf("%+v, %v, record %q", a, err, log.String())
	}
}

func TestAQuestionThatWaitsSaysWhich(t *testing.T) {
	_, err := broker.New(uip.PendingInteractor).WithSink(event.Discard).Ask(t.Context(), question("q1", "c1"))
	if w, ok := errors.AsType[*uip.PendingError](err); !ok || w.Request.ID != "q1" {
		t.Errorf("%v", err)
	}
}

func TestNobodyWaitsForTheirTurnInAnEndedTurn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var b *broker.Broker
	n := 0
	b = broker.New(uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		if n++; n == 1 {
			cancel()
			if a, err := b.WithSink(event.Discard).Ask(ctx, question("q2", "c2")); !errors.Is(err, context.Canceled) || a.Option != "" {
				t.Errorf("the second question: %+v, %v", a, err)
			}
		}
		return *yes(q.ID), nil
	}))
	if _, err := b.WithSink(event.Discard).Ask(t.Context(), question("q1", "c1")); err != nil || n != 1 {
		t.Errorf("%v, asked %d times", err, n)
	}
}

func TestAQuestionAboutNoCallIsAsked(t *testing.T) {
	var put []uip.Request
	q := question("q1", "")
	if a, err := broker.New(asked(uip.OptionApprove, &put)).WithSink(event.Discard).Ask(t.Context(), q); err != nil || a.Option != uip.OptionApprove || a.TaskID != "t" || len(put) != 1 {
		t.Errorf("%+v, %v, asked %d times", a, err, len(put))
	}
	b := broker.New(asked(uip.OptionReject, &put))
	b.Restore("", card("old", "", ""), yes("old")) // what was asked about no call answers none
	if a, err := b.WithSink(event.Discard).Ask(t.Context(), card("new", "", "")); err != nil || a.Option != uip.OptionReject || put[1].ID != "new" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestEachPartOfACardHasItsOwnAnswer(t *testing.T) {
	var put []uip.Request
	b := broker.New(asked(uip.OptionReject, &put))
	recall(b, card("old", "c1", "c2"), yes("old", uip.Response{ID: "old.2", Option: uip.OptionReject}))
	for call, want := range map[string]string{"c1": uip.OptionApprove, "c2": uip.OptionReject} {
		if a, err := b.WithSink(event.Discard).Ask(t.Context(), question("q", call)); err != nil || a.Option != want || len(put) != 0 {
			t.Errorf("%s: %+v, %v, asked %d times", call, a, err, len(put))
		}
	}
}

// A card that a call puts itself is answered as a whole, whatever its parts are about.
func TestACardOfACallIsOneQuestion(t *testing.T) {
	var put []uip.Request
	b := broker.New(asked(uip.OptionReject, &put))
	b.Restore("c1", card("old", "c1", "c2").BindToCall("c1"), yes("old"))
	if a, err := b.WithSink(event.Discard).Ask(t.Context(), card("new", "c1", "c2").BindToCall("c1")); err != nil || a.Option != uip.OptionApprove || len(put) != 0 {
		t.Errorf("%+v, %v, asked %d times", a, err, len(put))
	}
}

func TestACardThatIsAnsweredWholeIsNotPut(t *testing.T) {
	var put []uip.Request
	var log transcript
	b := broker.New(asked(uip.OptionReject, &put))
	recall(b, card("old", "c1", "c2"), yes("old"))
	q := card("new", "c1", "c2")
	a, err := b.WithSink(&log).Ask(t.Context(), q)
	if err != nil || len(put) != 0 || log.String() != "" || a.Author != "user" || a.PartAnswer(q.Parts[1]).Option != uip.OptionApprove {
		t.Errorf("%+v, %v, asked %d times, record %q", a, err, len(put), log.String())
	}
}

func TestOnlyWhatIsOpenOfACardIsPut(t *testing.T) {
	var put []uip.Request
	b := broker.New(asked(uip.OptionApprove, &put))
	recall(b, question("old", "c1"), &uip.Response{ID: "old", Author: "earlier", Option: uip.OptionReject})
	q := card("new", "c1", "c2")
	a, err := b.WithSink(event.Discard).Ask(t.Context(), q)
	if err != nil || len(put) != 1 || len(put[0].Parts) != 1 || put[0].Parts[0].CallID() != "c2" || a.Author != "user" ||
		a.PartAnswer(q.Parts[0]).Option != uip.OptionReject || a.PartAnswer(q.Parts[1]).Option != uip.OptionApprove {
		t.Errorf("%+v, %v, asked %+v", a, err, put)
	}
}

func TestANewCardIsPutAsItIs(t *testing.T) {
	var log transcript
	var put []uip.Request
	a, err := broker.New(asked(uip.OptionApprove, &put)).WithSink(&log).Ask(t.Context(), card("new", "c1", "c2"))
	if err != nil || a.Option != uip.OptionApprove || log.String() != "asked new\nanswered new approve by user\n" {
		t.Errorf("%+v, %v, record %q", a, err, log.String())
	}
}

// An open card that is no longer the same is void for all its calls, once; other open
// questions stay.
func TestAnOpenCardIsVoidForAllItsCalls(t *testing.T) {
	var log transcript
	var put []uip.Request
	b := broker.New(asked(uip.OptionApprove, &put))
	recall(b, card("old", "c1", "c2"), nil)
	recall(b, question("other", "c4"), nil)
	recall(b, question("done", "c5"), yes("done"))
	on := b.WithSink(&log)
	for _, q := range []uip.Request{card("new", "c1", "c3"), question("next", "c2"), question("last", "c4"), question("end", "c5")} {
		if _, err := on.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, q := range put {
		ids = append(ids, q.ID)
	}
	if strings.Join(ids, " ") != "new next other" || strings.Count(log.String(), "is void") != 1 || strings.Count(log.String(), "answered old reject by broker") != 1 {
		t.Errorf("asked %q, record:\n%s", ids, log.String())
	}
}

func TestAnOpenCardThatIsPutAgainIsOpenNoMore(t *testing.T) {
	var put []uip.Request
	b := broker.New(asked(uip.OptionApprove, &put))
	recall(b, card("old", "c1", "c2"), nil)
	var log transcript
	on := b.WithSink(&log)
	for _, q := range []uip.Request{card("new", "c1", "c2"), question("next", "c2")} {
		if a, err := on.Ask(t.Context(), q); err != nil || a.ID != q.ID {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if len(put) != 2 || put[0].ID != "old" || put[1].ID != "next" || strings.Contains(log.String(), "void") {
		t.Errorf("asked %+v, record:\n%s", put, log.String())
	}
}

// What cannot be put on record is not asked: neither that a question is void, nor why.
func TestAQuestionIsVoidOnRecordFirst(t *testing.T) {
	full := errors.New("disk full")
	for _, answered := range []bool{false, true} {
		for _, q := range []uip.Request{question("new", "c1"), card("new", "c1", "c2")} {
			var put []uip.Request
			b := broker.New(asked(uip.OptionApprove, &put))
			stored, answer := question("old", "c1"), (*uip.Response)(nil)
			stored.Digest = "ff"
			if answered {
				answer = yes("old")
			}
			recall(b, stored, answer)
			once := true
			sink := event.SinkFunc(func(_ context.Context, r event.Record) error {
				if _, notice := r.Event.(event.Notice); notice == answered && once {
					once = false
					return full
				}
				return nil
			})
			if a, err := b.WithSink(sink).Ask(t.Context(), q); !errors.Is(err, full) || len(put) != 0 || a.Option != "" {
				t.Errorf("%+v, %v, asked %d times", a, err, len(put))
			}
		}
	}
}

func TestAVoidQuestionThatIsNoApprovalIsCalledChanged(t *testing.T) {
	var log transcript
	stored, q := question("old", "c1"), question("new", "c1")
	stored.Purpose, q.Purpose, stored.Digest = uip.PurposeRequestInfo, uip.PurposeRequestInfo, "ff"
	var put []uip.Request
	b := broker.New(asked(uip.OptionApprove, &put))
	recall(b, stored, yes("old"))
	if _, err := b.WithSink(&log).Ask(t.Context(), q); err != nil || !strings.Contains(log.String(), "said asked again because something changed: bash rm x") {
		t.Errorf("%v, record:\n%s", err, log.String())
	}
}

// TestAnAnswerThatIsNotOnRecordIsNone: of a question, of one that is put again, and of
// what is open of a card.
func TestAnAnswerThatIsNotOnRecordIsNone(t *testing.T) {
	full := errors.New("disk full")
	sink := event.SinkFunc(func(_ context.Context, r event.Record) error {
		if _, answered := r.Event.(event.InteractionResponded); answered {
			return full
		}
		return nil
	})
	again := question("q1", "c1")
	for name, tt := range map[string]struct {
		setup func(*broker.Broker)
		q     uip.Request
	}{
		"a question": {func(*broker.Broker) {}, again},
		"put again":  {func(b *broker.Broker) { recall(b, again, nil) }, again},
		"of a card": {func(b *broker.Broker) {
			recall(b, question("old", "c1"), &uip.Response{ID: "old", Author: "earlier", Option: uip.OptionReject})
		}, card("new", "c1", "c2")},
	} {
		var put []uip.Request
		b := broker.New(asked(uip.OptionApprove, &put))
		tt.setup(b)
		if _, err := b.WithSink(sink).Ask(t.Context(), tt.q); !errors.Is(err, full) || len(put) != 1 {
			t.Errorf("%s: %v, asked %d times", name, err, len(put))
		}
	}
}
