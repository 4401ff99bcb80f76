package inbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"coder/internal/authkey"
	"coder/internal/inbox"
	"coder/internal/uip"
)

func TestALetterIsTakenOnlyForTheQuestionItAnswers(t *testing.T) {
	question := func(title string) uip.Request {
		return uip.Request{ID: "ui_1", Kind: uip.Confirm, Display: uip.Display{Title: title}, Digest: "ab12"}
	}
	here := inbox.Place{Root: "/w", Session: "s"}
	key := authkey.Temporary()
	for _, tt := range []struct {
		name  string
		key   *authkey.Key
		place inbox.Place
		shown uip.Request
		want  bool
	}{
		{"as it is asked", key, here, question("bash rm x"), true},
		{"shown as another", key, here, question("bash go test"), false},
		{"of another session", key, inbox.Place{Root: "/w", Session: "r"}, question("bash rm x"), false},
		{"of another folder", key, inbox.Place{Root: "/v", Session: "s"}, question("bash rm x"), false},
		{"by another user", authkey.Temporary(), here, question("bash rm x"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			desk, err := inbox.Box{Dir: dir, Key: key}.Open(question("bash rm x"), here)
			if err != nil {
				t.Fatal(err)
			}
			defer desk.Close()
			sent, err := inbox.Box{Dir: dir, Key: tt.key}.Post(tt.place, tt.shown, uip.Response{ID: "ui_1", Option: uip.Approve}, "a test", "one")
			if err != nil {
				t.Fatal(err)
			}
			if l, got := desk.Next(); got != tt.want || got && l.Answer.Option != uip.Approve {
				t.Errorf("taken: %v, %+v", got, l)
			}
			if refused := sent.State() == inbox.Refused; refused == tt.want {
				t.Errorf("refused: %v", refused)
			}
		})
	}
	if _, err := (inbox.Box{Dir: t.TempDir(), Key: key}).Post(here, question("x"), uip.Response{}, "", "one"); !errors.Is(err, inbox.ErrNobodyWaits) {
		t.Errorf("nobody waits: %v", err)
	}
}

// TestWhatKilledProcessesLeftIsSwept in time; where somebody waits nothing is.
func TestWhatKilledProcessesLeftIsSwept(t *testing.T) {
	box := inbox.Box{Dir: t.TempDir(), Key: authkey.Temporary()}
	wait := func(id string) *inbox.Desk {
		desk, err := box.Open(uip.Request{ID: id}, inbox.Place{Root: "/w", Session: "s"})
		if err != nil {
			t.Fatal(err)
		}
		return desk
	}
	defer wait("ui_waits").Close()
	for folder, file := range map[string]string{"ui_asked": "place", "ui_answered": "a_1.json", "ui_recent": "place"} {
		if err := errors.Join(os.Mkdir(filepath.Join(box.Dir, folder), 0o700), os.WriteFile(filepath.Join(box.Dir, folder, file), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-48 * time.Hour)
	for _, folder := range []string{"ui_waits", "ui_asked", "ui_answered"} {
		if err := os.Chtimes(filepath.Join(box.Dir, folder), long, long); err != nil {
			t.Fatal(err)
		}
	}
	wait("ui_now").Close()
	left, _ := filepath.Glob(filepath.Join(box.Dir, "*"))
	if len(left) != 2 || filepath.Base(left[0]) != "ui_recent" || filepath.Base(left[1]) != "ui_waits" {
		t.Errorf("left: %q", left)
	}
}
