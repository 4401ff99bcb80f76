package inbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"coder/internal/agent/inbox"
	"coder/internal/core/uip"
	"coder/internal/host/authkey"
)

func TestALetterIsTakenOnlyForTheQuestionItAnswers(t *testing.T) {
	question := func(title string) uip.Request {
		return uip.Request{ID: "ui_1", Kind: uip.KindConfirm, Display: uip.Display{Title: title}, Digest: "ab12"}
	}
	here := inbox.Origin{Root: "/w", Session: "s"}
	key := authkey.NewTemporary()
	for _, tt := range []struct {
		name  string
		key   *authkey.Key
		place inbox.Origin
		shown uip.Request
		want  bool
	}{
		{"as it is asked", key, here, question("bash rm x"), true},
		{"shown as another", key, here, question("bash go test"), false},
		{"of another session", key, inbox.Origin{Root: "/w", Session: "r"}, question("bash rm x"), false},
		{"of another folder", key, inbox.Origin{Root: "/v", Session: "s"}, question("bash rm x"), false},
		{"by another user", authkey.NewTemporary(), here, question("bash rm x"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			slot, err := inbox.Box{Dir: dir, Key: key}.Open(question("bash rm x"), here)
			if err != nil {
				t.Fatal(err)
			}
			defer slot.Close()
			sent, err := inbox.Box{Dir: dir, Key: tt.key}.Post(tt.place, tt.shown, uip.Response{ID: "ui_1", Option: uip.OptionApprove}, "a test", "one")
			if err != nil {
				t.Fatal(err)
			}
			if l, got := slot.Accept(); got != tt.want || got && l.Answer.Option != uip.OptionApprove {
				t.Errorf("taken: %v, %+v", got, l)
			}
			if refused := sent.State() == inbox.StateRefused; refused == tt.want {
				t.Errorf("refused: %v", refused)
			}
		})
	}
	if _, err := (inbox.Box{Dir: t.TempDir(), Key: key}).Post(here, question("x"), uip.Response{}, "", "one"); !errors.Is(err, inbox.ErrNotWaiting) {
		t.Errorf("nobody waits: %v", err)
	}
}

// TestWhatKilledProcessesLeftIsSwept at once; where somebody waits, or has sent
// an answer and waits for what becomes of it, nothing is.
func TestWhatKilledProcessesLeftIsSwept(t *testing.T) {
	box := inbox.Box{Dir: t.TempDir(), Key: authkey.NewTemporary()}
	here := inbox.Origin{Root: "/w", Session: "s"}
	wait := func(id string) *inbox.Slot {
		t.Helper()
		slot, err := box.Open(uip.Request{ID: id}, here)
		if err != nil {
			t.Fatal(err)
		}
		return slot
	}
	waits, asked := wait("ui_waits"), wait("ui_answered")
	letter, err := box.Post(here, uip.Request{ID: "ui_answered"}, uip.Response{ID: "ui_answered"}, "a test", "a_1")
	if err != nil {
		t.Fatal(err)
	}
	asked.Close()
	for folder, file := range map[string]string{"ui_killed": "place", "ui_late": "a_1.taken", "ui_half": ".new-17"} {
		if err := errors.Join(os.Mkdir(filepath.Join(box.Dir, folder), 0o700), os.WriteFile(filepath.Join(box.Dir, folder, file), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	left := func(want ...string) {
		t.Helper()
		box.Sweep()
		var names []string
		folders, _ := os.ReadDir(box.Dir)
		for _, f := range folders {
			names = append(names, f.Name())
		}
		if !slices.Equal(names, want) {
			t.Errorf("left: %q, want %q", names, want)
		}
	}
	left("ui_answered", "ui_waits")
	again := wait("ui_answered")
	if l, ok := again.Accept(); !ok || l.Answer.ID != "ui_answered" {
		t.Error("the letter is gone")
	}
	again.Close()
	left("ui_answered", "ui_waits")
	letter.Withdraw()
	left("ui_waits")
	waits.Close()
	left()
}
