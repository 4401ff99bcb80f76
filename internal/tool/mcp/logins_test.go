package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestLoginsAreForThePersonAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	l := SavedLogins{dir}
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
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
}
