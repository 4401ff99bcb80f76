package drive_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
	"coder/internal/core/uip"
	"coder/internal/ui/drive"
)

func words(text string) drive.Message {
	return drive.Message{Input: orchestrator.TextInput(chat.NewUserText(chat.OriginTyped, text))}
}

func TestMessagesAreRunOneAfterTheOtherAlsoAfterTheLastCame(t *testing.T) {
	var ran []string
	q := drive.NewQueue()
	turn := func(ctx context.Context, m drive.Message) error {
		ran = append(ran, m.Text())
		if m.Text() == "one" { // while it runs
			q.Add(words("three"))
			q.Finish()
		}
		return ctx.Err()
	}
	q.Add(words("one"))
	q.Add(words("two"))
	if err := q.Serve(t.Context(), turn); err != nil || !reflect.DeepEqual(ran, []string{"one", "two", "three"}) {
		t.Errorf("ran %v, %v", ran, err)
	}
}

func TestAnInterruptStopsTheRunningTurnAndNoOther(t *testing.T) {
	var ends []error
	q := drive.NewQueue()
	if q.Interrupt() {
		t.Error("a turn ran before any was begun")
	}
	turn := func(ctx context.Context, m drive.Message) error {
		if m.Text() == "long" {
			if !q.Interrupt() {
				t.Error("no turn runs")
			}
			<-ctx.Done()
		}
		ends = append(ends, ctx.Err())
		return nil
	}
	q.Add(words("long"))
	q.Add(words("next"))
	q.Finish()
	if err := q.Serve(t.Context(), turn); err != nil || len(ends) != 2 || ends[0] == nil || ends[1] != nil {
		t.Errorf("ended with %v, %v", ends, err)
	}
}

func TestTheEndOfTheProgramEndsTheWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := drive.NewQueue()
	q.Add(words("one"))
	if err := q.Serve(ctx, func(context.Context, drive.Message) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	broken := errors.New("nobody reads")
	q.Add(words("one"))
	if err := q.Serve(t.Context(), func(context.Context, drive.Message) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("ended with %v", err)
	}
}

func TestOnlyWordsThatMayAreTakenUpByTheRunningTurn(t *testing.T) {
	soon := func(m drive.Message) drive.Message { m.MidTurn = true; return m }
	picture := soon(words("look"))
	picture.Pictures = []chat.Image{{}}
	for name, tt := range map[string]struct {
		waiting []drive.Message
		want    []string
	}{
		"those marked":           {[]drive.Message{soon(words("a")), soon(words("b")), words("c"), soon(words("d"))}, []string{"a", "b"}},
		"no command":             {[]drive.Message{soon(words(" /new"))}, nil},
		"no command of a person": {[]drive.Message{soon(words("!ls"))}, nil},
		"no picture":             {[]drive.Message{picture}, nil},
		"not unasked":            {[]drive.Message{words("a")}, nil},
	} {
		q := drive.NewQueue()
		for _, m := range tt.waiting {
			q.Add(m)
		}
		var got []string
		for _, w := range q.TakeMidTurn() {
			got = append(got, w.Text())
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestRequestsAreAnsweredInAnyOrderOrWithdrawn(t *testing.T) {
	var r drive.Requests
	none := func(string) error { return nil }
	text, err := r.Do(t.Context(), func(id string) error {
		other, err := r.Do(t.Context(), func(inner string) error { // crosses the first
			r.Deliver("unheard of", nil, nil)
			r.Deliver(inner, json.RawMessage("2"), nil)
			r.Deliver(inner, json.RawMessage("3"), nil) // twice
			return nil
		}, none)
		if string(other) != "2" || err != nil {
			t.Errorf("the second got %s, %v", other, err)
		}
		r.Deliver(id, json.RawMessage("1"), nil)
		return nil
	}, none)
	if string(text) != "1" || err != nil {
		t.Errorf("the first got %s, %v", text, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	withdrawn := ""
	_, err = r.Do(ctx, func(string) error { cancel(); return nil }, func(id string) error { withdrawn = id; return nil })
	if !errors.Is(err, context.Canceled) || withdrawn == "" {
		t.Errorf("withdrawn %q, %v", withdrawn, err)
	}
	_, err = r.Do(t.Context(), func(string) error { r.Close(); return nil }, none)
	if !errors.Is(err, drive.ErrGone) {
		t.Errorf("when it went: %v", err)
	}
	if _, err = r.Do(t.Context(), none, none); !errors.Is(err, drive.ErrGone) {
		t.Errorf("after it went: %v", err)
	}
}

func TestACardIsPutPartByPart(t *testing.T) {
	options := []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionReject}}
	part := func(id string) uip.Request {
		return uip.Request{ID: id, Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Options: options}
	}
	card := uip.Request{ID: "q", Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction, Parts: []uip.Request{part("q.1"), part("q.2"), part("q.3")}}
	who := drive.NewInteractor(func(_ context.Context, q uip.Request) (uip.Response, error) {
		switch q.ID {
		case "q.1":
			return uip.Response{Option: uip.OptionApprove, AnsweredBy: "stdin"}, nil
		case "q.2":
			return uip.Response{Option: uip.OptionReject, Comment: "no", AnsweredBy: "stdin"}, nil
		}
		return uip.Response{}, drive.ErrGone
	})
	a, err := who.Ask(t.Context(), card)
	if err != nil || uip.CheckResponse(card, a) != nil {
		t.Fatalf("%+v, %v, %v", a, err, uip.CheckResponse(card, a))
	}
	if a.PartAnswer(card.Parts[0]).Option != uip.OptionApprove || a.PartAnswer(card.Parts[1]).Comment != "no" || a.PartAnswer(card.Parts[2]).Option != uip.OptionReject || a.AnsweredBy != "stdin" {
		t.Errorf("%+v", a)
	}
	alone, err := who.Ask(t.Context(), part("q.4"))
	if err != nil || !alone.IsUnanswered() {
		t.Errorf("with nobody there: %+v, %v", alone, err)
	}
}

func TestThePartsOfACardAreAskedInTheirOrder(t *testing.T) {
	card := uip.Request{ID: "q", Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction}
	for i := range 40 {
		card.Parts = append(card.Parts, uip.Request{ID: strconv.Itoa(i), Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Options: []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionReject}}})
	}
	var requests drive.Requests
	var asked, ids []string
	who := drive.NewInteractor(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		if q.ID == "7" {
			return uip.Response{}, drive.ErrGone // without a request
		}
		_, err := requests.Do(ctx, func(id string) error {
			asked, ids = append(asked, q.ID), append(ids, id)
			if len(ids) == len(card.Parts)-1 { // all are out: they are answered the last first
				for _, id := range slices.Backward(ids) {
					requests.Deliver(id, nil, nil)
				}
			}
			return nil
		}, func(string) error { return nil })
		return uip.Response{Option: uip.OptionApprove}, err
	})
	a, err := who.Ask(t.Context(), card)
	if err != nil || len(a.Parts) != len(card.Parts) {
		t.Fatal(a, err)
	}
	for i, id := range asked {
		want := i
		if i >= 7 {
			want++
		}
		if id != strconv.Itoa(want) {
			t.Fatalf("asked in the order %v", asked)
		}
	}
}
