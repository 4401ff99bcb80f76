package typed_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/record/typed"
)

func TestWhatWasSentIsFoundAgain(t *testing.T) {
	b := typed.InputStore{Dir: filepath.Join(t.TempDir(), "p")}
	for _, text := range []string{"one", "two\nlines", "one", "  ", "三", strings.Repeat("x", 70<<10)} {
		if err := b.AddSent(text); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.Sent(""), []string{"two\nlines", "one", "三"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	f, err := os.OpenFile(filepath.Join(b.Dir, "sent.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"text":"to`); err != nil { // killed in the middle
		t.Fatal(err)
	}
	f.Close()
	if err := b.AddSent("lost with it"); err != nil {
		t.Fatal(err)
	}
	if err := b.AddSent("after"); err != nil {
		t.Fatal(err)
	}
	if got := b.Sent(""); got[len(got)-1] != "after" || len(got) != 4 {
		t.Errorf("kept %q", got)
	}
}

func TestWhatIsSentInOnePartOfAProjectIsFoundInTheOthers(t *testing.T) {
	all := t.TempDir()
	whole, api, web := filepath.Join(all, "whole"), filepath.Join(all, "api"), filepath.Join(all, "web")
	for _, sent := range []struct {
		in   typed.InputStore
		text string
	}{
		{typed.InputStore{Dir: api}, "before it was a part"},
		{typed.InputStore{Dir: api, Project: whole}, "in a part"},
		{typed.InputStore{Dir: whole, Project: whole}, "in the whole"},
	} {
		if err := sent.in.AddSent(sent.text); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string][]string{
		whole: {"in a part", "in the whole"},
		web:   {"in a part", "in the whole"},
		api:   {"before it was a part", "in a part", "in the whole"},
	} {
		if got := (typed.InputStore{Dir: dir, Project: whole}).Sent(""); !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", filepath.Base(dir), got, want)
		}
	}
	if err := (typed.InputStore{Dir: web, Project: whole}).SaveDraft("s", typed.Draft{Text: "being typed"}); err != nil {
		t.Fatal(err)
	}
	if d, _ := (typed.InputStore{Dir: whole, Project: whole}).NewestDraft(nil); d != "" {
		t.Errorf("the draft of a part is offered in the whole: %q", d)
	}
}

func TestWhatASessionWasToldElsewhereIsFoundAndWhatIsBeingTypedIsNot(t *testing.T) {
	b := typed.InputStore{Dir: t.TempDir()}
	for _, text := range []string{"typed here", "typed later"} {
		if err := b.AddSent(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"s", "other"} {
		if err := b.SaveDraft(id, typed.Draft{Text: "being typed in " + id}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"typed here", "typed later", "said by a script", "being typed in other"}
	if got := b.Sent("s", "typed here", "said by a script"); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := (typed.InputStore{}).Sent("s", "said by a script"); !slices.Equal(got, want[2:3]) {
		t.Errorf("where nothing is saved, found %q", got)
	}
}

func TestTheOldestIsForgotten(t *testing.T) {
	b := typed.InputStore{Dir: t.TempDir()}
	for i := range 80 {
		if err := b.AddSent(strings.Repeat(string(rune('a'+i%26)), 60<<10) + string(rune('0'+i))); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(b.Dir, "sent.jsonl"))
	if err != nil || info.Size() > 3<<20 || info.Mode().Perm() != 0o600 {
		t.Fatalf("%d bytes, %v, %v", info.Size(), info.Mode(), err)
	}
	if got := b.Sent(""); len(got) < 10 || !strings.HasSuffix(got[len(got)-1], string(rune('0'+79))) {
		t.Errorf("%d are left", len(got))
	}
}

func TestADraftIsThereAgain(t *testing.T) {
	b := typed.InputStore{Dir: filepath.Join(t.TempDir(), "p")}
	keep := func(id string, d typed.Draft) {
		t.Helper()
		if err := b.SaveDraft(id, d); err != nil {
			t.Fatal(err)
		}
	}
	none, all := func(string) bool { return false }, func(string) bool { return true }
	keep("a", typed.Draft{Queue: []string{"first", "second"}, Text: "third"})
	keep("b", typed.Draft{Text: "of b, with sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD"})
	now := time.Now()
	if got := b.Sent(""); len(got) != 2 || got[0] != "first\nsecond\nthird" {
		t.Errorf("searching finds %q", got)
	}
	if got := b.Draft("a", typed.DraftAbandoned, none, now).FullText(); got != "first\nsecond\nthird" {
		t.Errorf("a has %q", got)
	}
	if got := b.Draft("c", typed.DraftAbandoned, none, now); !got.IsEmpty() {
		t.Errorf("c has %+v", got)
	}
	if got := b.Draft("c", typed.DraftAbandoned, func(id string) bool { return id == "b" }, now).FullText(); !strings.HasPrefix(got, "of b, with ") || strings.Contains(got, "abcdefghijkl") {
		t.Errorf("c took %q", got)
	}
	if got := b.Draft("c", typed.DraftAbandoned, func(id string) bool { return id == "b" }, now); !got.IsEmpty() {
		t.Errorf("it was given twice: %+v", got)
	}
	keep("d", typed.Draft{Text: "later"})
	if got := b.Draft("a", typed.DraftAbandoned, all, now).FullText(); got != "first\nsecond\nthird" {
		t.Errorf("a has %q where d was typed in later", got)
	}
	if got := b.Draft("a", typed.DraftNewest, all, now).FullText(); got != "later" || !slices.Contains(b.Sent(""), "third") {
		t.Errorf("what was typed last is %q", got)
	}
	keep("a", typed.Draft{})
	if got := b.Draft("a", typed.DraftAbandoned, all, now); !got.IsEmpty() {
		t.Errorf("a still has %+v", got)
	}
	keep("old", typed.Draft{Text: "old"})
	if got := b.Draft("x", typed.DraftAbandoned, all, now.Add(100*24*time.Hour)); !got.IsEmpty() {
		t.Errorf("%+v was brought back after a hundred days", got)
	}
}

// What was answered to the first of several questions is kept up to the first key in it.
func TestAnAnswerWithAKeyIsAskedForAgain(t *testing.T) {
	b := typed.InputStore{Dir: t.TempDir()}
	given := []string{"2", "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD", "3"}
	if err := b.SaveDraft("s", typed.Draft{Question: "q", Answers: given, Answer: "half"}); err != nil {
		t.Fatal(err)
	}
	got := b.Draft("s", typed.DraftAbandoned, func(string) bool { return true }, time.Now())
	if !slices.Equal(got.Answers, given[:1]) || got.Answer != "" || got.Text != "half" {
		t.Errorf("it is %+v", got)
	}
	if err := b.SaveDraft("s", typed.Draft{Question: "q", Answers: given[:1]}); err != nil {
		t.Fatal(err)
	}
	if got := b.Draft("s", typed.DraftAbandoned, func(string) bool { return true }, time.Now()); !slices.Equal(got.Answers, given[:1]) {
		t.Errorf("it is %+v", got)
	}
}

func TestAnAnswerIsToNoOtherQuestion(t *testing.T) {
	b := typed.InputStore{Dir: t.TempDir()}
	if err := b.SaveDraft("gone", typed.Draft{Text: "half", Answer: "y and"}); err != nil {
		t.Fatal(err)
	}
	if got := b.Draft("here", typed.DraftAbandoned, func(string) bool { return true }, time.Now()); got.Answer != "" || got.Text != "half\ny and" {
		t.Errorf("it is %+v", got)
	}
}

func TestTheZeroBookKeepsNothing(t *testing.T) {
	var b typed.InputStore
	if err := b.AddSent("x"); err != nil {
		t.Error(err)
	}
	if err := b.SaveDraft("s", typed.Draft{Text: "x"}); err != nil {
		t.Error(err)
	}
	if got := b.Draft("s", typed.DraftAbandoned, func(string) bool { return true }, time.Now()); !got.IsEmpty() || b.Sent("") != nil {
		t.Errorf("it kept %+v", got)
	}
}

// What was left in one session and sent in another is not offered again.
func TestADraftThatWasSentElsewhereIsForgotten(t *testing.T) {
	b := typed.InputStore{Dir: filepath.Join(t.TempDir(), "p")}
	for session, text := range map[string]string{"a": "the same ", "b": "another", "open": "the same"} {
		if err := b.SaveDraft(session, typed.Draft{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	left := func(session string) bool { return session != "open" }
	b.RemoveDrafts("the same", left)
	if d := b.Draft("a", typed.DraftAbandoned, func(string) bool { return false }, time.Now()); !d.IsEmpty() {
		t.Errorf("a has %+v", d)
	}
	for session, want := range map[string]string{"b": "another", "open": "the same"} {
		if d := b.Draft(session, typed.DraftAbandoned, left, time.Now()); d.Text != want {
			t.Errorf("%s has %+v", session, d)
		}
	}
}

// What is being typed in another process stays there; what a dead one left does not.
func TestADraftThatIsBeingTypedElsewhereStaysThere(t *testing.T) {
	b := typed.InputStore{Dir: t.TempDir()}
	all := func(string) bool { return true }
	left := func(id string, by int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.Dir, id+".draft"), fmt.Appendf(nil, `{"text":"of %s","by":%d}`, id, by), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left("live", os.Getppid())
	if got := b.Draft("new", typed.DraftNewest, all, time.Now()); !got.IsEmpty() {
		t.Errorf("%+v was taken", got)
	}
	if id, _ := b.NewestDraft(nil); id != "" {
		t.Errorf("%s was left", id)
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	left("dead", ended.Process.Pid)
	if got := b.Draft("new", typed.DraftOwn, all, time.Now()); !got.IsEmpty() {
		t.Errorf("%+v was taken unasked", got)
	}
	if got := b.Draft("new", typed.DraftAbandoned, all, time.Now()); got.Text != "of dead" {
		t.Errorf("%+v was taken", got)
	}
}

func TestBlankLinesAreNoDraft(t *testing.T) {
	b := typed.InputStore{Dir: t.TempDir()}
	if err := b.SaveDraft("a", typed.Draft{Text: "\n"}); err != nil {
		t.Fatal(err)
	}
	if id, _ := b.NewestDraft(nil); id != "" {
		t.Error("a line end is kept")
	}
}
