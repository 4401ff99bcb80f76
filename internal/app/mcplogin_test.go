package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestLoginsAreForThePersonAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	l := logins{dir}
	if got, err := l.Load("a"); err != nil || got != nil {
		t.Errorf("before any: %s, %v", got, err)
	}
	var all sync.WaitGroup
	for _, address := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			if err := l.Save(address, json.RawMessage(`{"of":"`+address+`"}`)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := l.Save("b", nil); err != nil {
		t.Error(err)
	}
	for address, want := range map[string]string{"a": `{"of":"a"}`, "b": "", "c": `{"of":"c"}`, "d": `{"of":"d"}`} {
		if got, err := l.Load(address); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", address, got, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, loginsFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, loginsFile), []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Save("x", json.RawMessage(`{}`)); err == nil {
		t.Error("what cannot be read was written over")
	}
}
