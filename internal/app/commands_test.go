package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy/trust"
)

// studio is the program over a folder, with a script for a model unless the flags
// say otherwise.
type studio struct {
	*Workspace
	t        *testing.T
	sup      *Sessions
	warnings []string
}

func newStudio(t *testing.T, script string, change func(*Env, *Options)) *studio {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	model := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(model, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	env := Env{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, Dir: dir, Now: time.Now}
	o := Options{Script: model, Overrides: Overrides{AutoApprove: true}}
	if change != nil {
		change(&env, &o)
	}
	s := &studio{t: t}
	settings, err := Load(env, o)
	if err != nil {
		t.Fatal(err)
	}
	if s.Workspace, err = New(env, o, settings, func(text string) { s.warnings = append(s.warnings, text) }); err != nil {
		t.Fatal(err)
	}
	s.sup = s.NewSupervisor(uip.NoInteractor, Screen{})
	return s
}

func (s *studio) start(id string) *supervisor.Session {
	s.t.Helper()
	ss, err := s.sup.StartSession(s.t.Context(), id, event.Discard)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = ss.Close() })
	return ss
}

// run runs an input and returns its text and the notices it gave.
func (s *studio) run(ss *supervisor.Session, input string) (text string, notices []string) {
	s.t.Helper()
	done, err := ss.RunText(s.t.Context(), input, event.SinkFunc(func(_ context.Context, r event.Record) error {
		if n, ok := r.Event.(event.Notice); ok {
			notices = append(notices, n.Text)
		}
		return nil
	}))
	if err != nil {
		s.t.Fatalf("%s: %v", input, err)
	}
	return done.Text, notices
}

func TestAModelThatCannotBeSavedIsUsedAllTheSame(t *testing.T) {
	s := newStudio(t, "say hi\nrepeat", nil)
	ss := s.start("s1")
	at := filepath.Join(s.dataDir(), "config.json")
	if err := os.MkdirAll(at, 0o755); err != nil { // a folder in the place of the file
		t.Fatal(err)
	}
	text, notices := s.run(ss, "/model bigger")
	if text != "model: bigger" || len(notices) != 1 || !strings.Contains(notices[0], "could not be saved") {
		t.Errorf("%q, %q", text, notices)
	}
	s.wantModel(ss, "bigger")
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if _, notices := s.run(ss, "/model biggest"); len(notices) != 0 {
		t.Errorf("%q", notices)
	}
	saved, err := os.ReadFile(at)
	if err != nil || !strings.Contains(string(saved), `"biggest"`) {
		t.Errorf("%s, %v", saved, err)
	}
}

func TestAReadOnlyFolderKeepsNoModel(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("nothing is read-only for root")
	}
	s := newStudio(t, "say hi\nrepeat", nil)
	ss := s.start("s1")
	if err := os.MkdirAll(s.dataDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.dataDir(), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(s.dataDir(), 0o755) })
	if text, notices := s.run(ss, "/model bigger"); text != "model: bigger" || len(notices) != 1 {
		t.Errorf("%q, %q", text, notices)
	}
	s.wantModel(ss, "bigger")
}

// wantModel sees which model the next request is for.
func (s *studio) wantModel(ss *supervisor.Session, want string) {
	s.t.Helper()
	got := ""
	_, err := ss.RunText(s.t.Context(), "hello", event.SinkFunc(func(_ context.Context, r event.Record) error {
		if m, ok := r.Event.(event.MessageAdded); ok && m.Message.Role == chat.Assistant {
			got = m.Model
		}
		return nil
	}))
	if err != nil || got != want {
		s.t.Errorf("the request was for %q (%v), want %q", got, err, want)
	}
}

func TestSavingAModelKeepsTrustOnlyWhereItStillHolds(t *testing.T) {
	s := newStudio(t, "", nil)
	at := filepath.Join(s.Root, ".coder", "config.json")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(state trust.State) {
		t.Helper()
		if got, err := s.Trust.StateOf(s.Root); got != state || err != nil {
			t.Errorf("%v, %v, want %v", got, err, state)
		}
	}
	write("// mine\n{}\n")
	if err := s.saveModel("one"); err != nil {
		t.Fatal(err)
	}
	want(trust.Unknown)
	if err := s.Trust.Trust(s.Root); err != nil {
		t.Fatal(err)
	}
	if err := s.saveModel("two"); err != nil {
		t.Fatal(err)
	}
	want(trust.Trusted)
	write(`{"safety": {"sandbox": "off"}}`) // by somebody else
	if err := s.saveModel("three"); err != nil {
		t.Fatal(err)
	}
	want(trust.Changed)
	text, err := os.ReadFile(at)
	info, statErr := os.Stat(at)
	if err != nil || statErr != nil || !strings.Contains(string(text), `"sandbox": "off"`) || info.Mode().Perm() != 0o640 {
		t.Errorf("%s %v %v", text, info.Mode(), err)
	}
}

func TestTheModelMayBeSwitchedWhileOthersLookAtIt(t *testing.T) {
	s := newStudio(t, "", nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				_ = s.ModelName()
			}
		})
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := (modelSwitcher{Models: s.Models}).Switch(t.Context(), name, false); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if s.ModelName() != "c" {
		t.Error(s.ModelName())
	}
}

func TestModelsAreThoseOfTheSettingsAndOfTheEndpoint(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"gpt-5"},{"id":"far-away"},{"id":"told","max_model_len":4096}]}`)
	}))
	defer server.Close()
	s := newStudio(t, "", nil)
	s.Options.Script, s.Config.Provider.BaseURL, s.Config.Provider.Model = "", server.URL+"/v1", "gpt-5"
	s.Config.Provider.Models = []string{"near", "gpt-5"}
	s.Config.Provider.ModelInfo = map[string]json.RawMessage{"near": json.RawMessage(`{"context":99,"price_in":0,"price_out":0}`)}
	table, err := modelSwitcher{Models: s.Models}.List(t.Context())
	got := table.JoinCells(" ")
	if err != nil || !strings.Contains(got, "\n* gpt-5 400000? 1.25 ") || !strings.Contains(got, "\n near 99 0.00 ") || !strings.Contains(got, "\n far-away 128000? ? ") || !strings.Contains(got, "\n told 4096 ? ") {
		t.Errorf("%q, %v", got, err)
	}
	server.Close()
	if table, err := (modelSwitcher{Models: s.Models}).List(t.Context()); err == nil || len(table.Rows) != 2 {
		t.Errorf("%v, %v", table.Rows, err)
	}
}

func TestGoingBackToASessionTakesItsModeAlong(t *testing.T) {
	s := newStudio(t, "", nil)
	planned := s.start("planned")
	s.run(planned, "/plan")
	if err := planned.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.ModeState.Switch("auto-edit"); err != nil {
		t.Fatal(err)
	}
	mode := func() string { m, _ := s.ModeState.Current(); return m.Name }
	if _, err := s.SwitchSession(t.Context(), s.sup, &orchestrator.Destination{Session: "nowhere"}, "x", event.Discard); err == nil || mode() != "auto-edit" {
		t.Errorf("%v, in %s", err, mode())
	}
	back, err := s.SwitchSession(t.Context(), s.sup, &orchestrator.Destination{Session: "planned"}, "x", event.Discard)
	if err != nil || mode() != "plan" {
		t.Fatalf("%v, in %s", err, mode())
	}
	if _, err := s.SwitchSession(t.Context(), s.sup, &orchestrator.Destination{Session: "planned"}, "x", event.Discard); err == nil {
		t.Error("a session in use was opened again")
	}
	fresh, err := s.SwitchSession(t.Context(), s.sup, &orchestrator.Destination{New: true, Session: "fresh"}, "planned", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fresh.Close(), back.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Store().Path("sessions", "fresh.json")); err != nil {
		t.Error(err)
	}
}

func TestSessionsAreListedNewestFirstAndFromTheirLogsIfNeedBe(t *testing.T) {
	s := newStudio(t, "say ok\nrepeat", nil)
	for _, id := range []string{"one", "two", "three"} {
		ss := s.start(id)
		s.run(ss, "about "+id)
		if err := ss.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(s.Store().Path("sessions", "two.json")); err != nil {
		t.Fatal(err)
	}
	heads, err := s.Store().ListHeads(t.Context())
	if err != nil || len(heads) != 3 || heads[0].ID != "three" || heads[1].ID != "two" || heads[1].Meta.Title != "about two" || heads[1].Meta.Turns != 1 {
		t.Errorf("%+v, %v", heads, err)
	}
	for i := range 20 {
		ss := s.start("more" + string(rune('a'+i)))
		s.run(ss, "x")
		_ = ss.Close()
	}
	last, err := s.sup.ResumeSession(t.Context(), "moret", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = last.Close() }()
	if text, _ := s.run(last, "/sessions"); !strings.Contains(text, "\n*  moret ") || !strings.Contains(text, "\nand 11 older\n") {
		t.Errorf("%s", text)
	}
}

func TestASessionThatIsOpenElsewhereIsNotGoneTo(t *testing.T) {
	s := newStudio(t, "", nil)
	other, here := s.start("other"), s.start("here")
	s.run(other, "/mode")
	_, err := here.RunText(t.Context(), "/resume other", event.Discard)
	var failed *orchestrator.CommandError
	if !errors.As(err, &failed) || !strings.HasPrefix(failed.Text, "session other is in use by ") {
		t.Errorf("%v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	done, err := here.RunText(t.Context(), "/resume other", event.Discard)
	if err != nil || done.Destination == nil || done.Text != "opening session other" {
		t.Fatalf("%+v, %v", done, err)
	}
	again, err := s.SwitchSession(t.Context(), s.sup, done.Destination, "here", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

func TestExportIntoAFolderThatIsNotThere(t *testing.T) {
	s := newStudio(t, "", nil)
	here := s.start("here")
	for _, input := range []string{"/export html none/x.html", "/export html " + filepath.Join(s.Root, "none", "x.html")} {
		_, err := here.RunText(t.Context(), input, event.Discard)
		if err == nil || !strings.HasSuffix(err.Error(), "none does not exist") {
			t.Errorf("%s: %v", input, err)
		}
	}
	if text, _ := s.run(here, "/export md x"); text != "written: x" {
		t.Errorf("%q", text)
	}
}

// A session that was opened and left leaves nothing; one of which anything is kept, if
// only what damage left over, stays as it is.
func TestASessionInWhichNothingHappenedIsForgotten(t *testing.T) {
	s := newStudio(t, "say ok", nil)
	store := s.Store()
	there := func(names ...string) bool { _, err := os.Lstat(store.Path(names...)); return err == nil }
	open := func(id string) {
		t.Helper()
		if err := s.start(id).Close(); err != nil {
			t.Fatal(err)
		}
	}
	open("empty")
	open("spoiled")
	if err := os.WriteFile(store.Path("log", "spoiled", "conversation.jsonl.broken"), []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"empty", "spoiled"} {
		store.RemoveEmpty(id)
	}
	if there("log", "empty") || !there("log", "spoiled", "conversation.jsonl.broken") {
		t.Errorf("an empty session is there: %v", there("log", "empty"))
	}
	if err := os.RemoveAll(store.Path("log", "spoiled")); err != nil {
		t.Fatal(err)
	}
	used := s.start("used")
	s.run(used, "go")
	if err := used.Close(); err != nil {
		t.Fatal(err)
	}
	if store.RemoveEmpty("used"); !there("log", "used", "conversation.jsonl") {
		t.Error("a session is lost")
	}
}

func TestAFolderThatWasOnlyLookedIntoStaysAsItWas(t *testing.T) {
	s := newStudio(t, "say ok", nil)
	if err := s.start("empty").Close(); err != nil {
		t.Fatal(err)
	}
	s.Store().RemoveEmpty("empty")
	if left, err := os.ReadDir(s.Store().Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestBrief(t *testing.T) {
	for words, want := range map[string]string{
		"off": "off",
		"namespaces: writes only below /w, /tmp; no network":                   "namespaces: writes only below /w, /tmp; no network",
		"namespaces: writes only below /w, /tmp, /a, /b, /c; no changes to /d": "namespaces: writes only below /w, /tmp, /a, ...; no changes to /d",
	} {
		if got := shortenSandboxText(words); got != want {
			t.Errorf("%q is told as %q", words, got)
		}
	}
}

// A session that was cut off has its last use on record and not in its snapshot.
func TestTheLastUseOfASessionThatWasCutOffIsThatOfItsLogs(t *testing.T) {
	s := newStudio(t, "say ok\nrepeat", nil)
	for _, id := range []string{"older", "newer"} {
		ss := s.start(id)
		s.run(ss, "about "+id)
		if err := ss.Close(); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Add(time.Minute)
	for _, l := range event.AllLogs {
		_ = os.Chtimes(s.Store().Path("log", "older", l.String()+".jsonl"), now, now) // there may be none
	}
	heads, err := s.Store().ListHeads(t.Context())
	if err != nil || len(heads) != 2 || heads[0].ID != "older" || heads[0].Updated.Sub(now).Abs() > time.Second {
		t.Errorf("%+v, %v", heads, err)
	}
}
