package serve_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/serve"
	"coder/internal/ui/drive"
)

// room is a workspace with a model that says what a script tells it.
func room(t *testing.T, script string) *app.Workspace {
	t.Helper()
	top := t.TempDir()
	dir, model := filepath.Join(top, "w"), filepath.Join(top, "model")
	exe, err := os.Executable()
	if err := errors.Join(err, os.Mkdir(dir, 0o755), os.WriteFile(model, []byte(script), 0o644)); err != nil {
		t.Fatal(err)
	}
	env := app.Env{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(top, "home")}, Dir: dir, Now: time.Now, Exe: exe}
	o := app.Options{Script: model}
	settings, err := app.Load(env, o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(env, o, settings, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func open(t *testing.T, a *app.Workspace, o serve.Options) *serve.Host {
	t.Helper()
	h, err := serve.Open(t.Context(), a, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if done := h.Close(context.Background()); done.Err != nil {
			t.Error(done.Err)
		}
	})
	return h
}

func words(text string) orchestrator.Input {
	return orchestrator.TextInput(chat.NewUserText(chat.OriginTyped, text))
}

// edits asks whether a file may be written.
const edits = `call write {"path":"a.txt","content":"a"}
---
say done
---
say more
`

// shown hands on each question when it is shown.
func shown(to chan<- uip.Request) event.Sink {
	return event.SinkFunc(func(_ context.Context, r event.Record) error {
		if e, ok := r.Event.(event.InteractionRequested); ok {
			to <- e.Request
		}
		return nil
	})
}

func approved(q uip.Request) uip.Response {
	return uip.Response{ID: q.ID, Option: "approve", Author: event.ActorUser}
}

// never is a face whose person does not answer.
func never(ctx context.Context, _ uip.Request) (uip.Response, error) {
	<-ctx.Done()
	return uip.Response{}, ctx.Err()
}

func TestTheFirstAnswerCountsWhoeverGivesIt(t *testing.T) {
	for name, person := range map[string]uip.Interactor{"nobody is here": nil, "the one here is slow": uip.InteractorFunc(never)} {
		t.Run(name, func(t *testing.T) {
			a := room(t, edits)
			asked := make(chan uip.Request, 1)
			h := open(t, a, serve.Options{Sink: shown(asked), User: person})
			if _, open := h.Questions.Current(); open {
				t.Error("a question is open before any was asked")
			}
			var first, second bool
			go func() {
				q := <-asked // it may not have been put to anybody yet
				first = h.Questions.Answer(t.Context(), approved(q))
				second = h.Questions.Answer(t.Context(), uip.Response{ID: q.ID, Option: "deny"})
				asked <- q
			}()
			out, err := h.Run(t.Context(), words("write it"))
			<-asked
			if err != nil || out.Text != "done" || !first || second {
				t.Errorf("came to %+v, %v; answers counted: %t, %t", out, err, first, second)
			}
			if _, err := os.Stat(filepath.Join(a.Root, "a.txt")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnAnswerFromAnotherProcessCounts(t *testing.T) {
	a := room(t, edits)
	asked, told := make(chan uip.Request, 1), make(chan string, 1)
	h := open(t, a, serve.Options{Sink: shown(asked), User: uip.InteractorFunc(never), RemoteAnswers: true, RecordedOnly: true, Report: func(text string) { told <- text }})
	handed := make(chan error, 1)
	go func() {
		q := <-asked
		misfit := approved(q)
		misfit.Option = "misfit"
		refusal := serve.Refusal("")
		if err := serve.ForwardAnswer(t.Context(), a, h.ID(), q, misfit); !errors.As(err, &refusal) {
			t.Errorf("an answer that the question does not offer: %v", err)
		}
		handed <- serve.ForwardAnswer(t.Context(), a, h.ID(), q, approved(q))
	}()
	out, err := h.Run(t.Context(), words("write it"))
	if err != nil || out.Text != "done" {
		t.Errorf("came to %+v, %v", out, err)
	}
	if err := <-handed; !errors.Is(err, serve.ErrAnsweredElsewhere) {
		t.Errorf("handed over: %v", err)
	}
	if text := <-told; !strings.Contains(text, "coder respond") {
		t.Errorf("the person here was told %q", text)
	}
}

func TestWhereNobodyAnswersAnyMoreNothingIsWaitedFor(t *testing.T) {
	h := open(t, room(t, edits), serve.Options{})
	h.Questions.End()
	done := make(chan error, 1)
	go func() {
		_, err := h.Run(t.Context(), words("write it"))
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(h.App.Root, "a.txt")); err == nil {
		t.Error("the file was written, and nobody had allowed that")
	}
}

func TestAQuestionOfATurnThatIsStoppedIsOpenToNobody(t *testing.T) {
	asked := make(chan uip.Request, 1)
	h := open(t, room(t, edits), serve.Options{Sink: shown(asked)})
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-asked; stop() }()
	if _, err := h.Run(ctx, words("write it")); err == nil {
		t.Error("the turn ended well")
	}
	if q, open := h.Questions.Current(); open {
		t.Errorf("%s is open", q.ID)
	}
}

func TestMessagesRunOneAfterTheOtherUntilThePersonIsDone(t *testing.T) {
	h := open(t, room(t, "say one\n---\nsay two\n"), serve.Options{})
	for _, text := range []string{"first", "/exit", "never run"} {
		h.Add(drive.Message{Input: words(text)})
	}
	var answers []string
	err := h.RunQueue(t.Context(), func(ctx context.Context, m drive.Message) error {
		if h.Ended() {
			return errors.New("it went on after the person was done")
		}
		out, err := h.Run(ctx, m.Input)
		if m.Text() == "/exit" {
			h.TakeAll()
		} else {
			answers = append(answers, out.Text)
		}
		return err
	})
	if err != nil || !h.Ended() || !slices.Equal(answers, []string{"one"}) {
		t.Errorf("answers %q, over %t, %v", answers, h.Ended(), err)
	}
}

func TestACommandLeadsToAnotherSession(t *testing.T) {
	h := open(t, room(t, "say one\n---\nsay two\n"), serve.Options{})
	if _, err := h.Run(t.Context(), words("first")); err != nil {
		t.Fatal(err)
	}
	was := h.ID()
	out, err := h.Run(t.Context(), words("/new"))
	if err != nil || out.SwitchErr != nil || out.Previous == nil || out.Previous.ID != was || out.Previous.Unused || h.ID() == was {
		t.Errorf("came to %+v, %v, now in %s, was in %s", out, err, h.ID(), was)
	}
	if out, err = h.Run(t.Context(), words("/resume "+was)); err != nil || h.ID() != was {
		t.Errorf("came to %+v, %v, now in %s", out, err, h.ID())
	}
}

func TestASessionInWhichNothingWasSaidLeavesNothing(t *testing.T) {
	a := room(t, "say one\n")
	h, err := serve.Open(t.Context(), a, serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if done := h.Close(t.Context()); !done.Unused || done.Err != nil || done.UnsavedErr != nil {
		t.Errorf("closed with %+v", done)
	}
	if left, err := os.ReadDir(a.Root); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestASessionThatCannotBeOpenedLeavesNothing(t *testing.T) {
	a := room(t, "say one\n")
	if _, err := serve.Open(t.Context(), a, serve.Options{Which: app.SessionChoice{ResumeID: "nowhere"}}); err == nil {
		t.Fatal("a session was opened that is not there")
	}
	if left, err := os.ReadDir(a.Root); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestATurnIsStoppedFromAnotherProcess(t *testing.T) {
	a := room(t, edits)
	asked, told := make(chan uip.Request, 1), make(chan string, 1)
	h := open(t, a, serve.Options{Sink: shown(asked), User: uip.InteractorFunc(never)})
	if refusal := serve.Refusal(""); serve.AcceptsMessages(a, h.ID(), serve.StopSlot) || !errors.As(serve.SendMessage(t.Context(), a, h.ID(), serve.StopSlot, ""), &refusal) {
		t.Error("it is listened for what is said elsewhere while no turn runs")
	}
	turn, over := h.WithRemoteStop(t.Context(), func(text string) { told <- text })
	defer over()
	stopped := make(chan error, 1)
	go func() {
		<-asked
		for !serve.AcceptsMessages(a, h.ID(), serve.StopSlot) {
			runtime.Gosched()
		}
		stopped <- serve.SendMessage(t.Context(), a, h.ID(), serve.StopSlot, "")
	}()
	if _, err := h.Run(turn, words("write it")); err == nil {
		t.Error("the turn ended well")
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if text := <-told; !strings.Contains(text, "coder web") {
		t.Errorf("the person here was told %q", text)
	}
}

func TestWhatIsSaidElsewhereIsHeardInItsSession(t *testing.T) {
	a := room(t, "say one\n")
	h := open(t, a, serve.Options{})
	var l serve.Listener
	if _, ok := l.Next(); ok {
		t.Error("something was said before anybody listened")
	}
	l.Listen(a, h.ID(), serve.MessageSlot, serve.StopSlot)
	defer l.Close()
	sent := make(chan error, 1)
	go func() { sent <- serve.SendMessage(t.Context(), a, h.ID(), serve.MessageSlot, "go on") }()
	for {
		said, ok := l.Next()
		if !ok {
			runtime.Gosched()
			continue
		}
		if said.Text != "go on" || said.Stop {
			t.Errorf("heard %+v", said)
		}
		break
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
