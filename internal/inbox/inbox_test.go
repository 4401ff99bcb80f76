package inbox_test

import (
	"errors"
	"testing"

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
