package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"coder/internal/host/workspace"
)

// A feed that counts tells what was done to each file since it was last asked.
func TestAFeedCountsOperations(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string) { t.Helper(); must(os.WriteFile(at(name), []byte("x"), 0o644)) }
	feed := ws.Subscribe().CountOps()
	feed.Changes()
	if _, err := ws.Survey(t.Context(), workspace.Survey{Limit: 100, Feed: feed, Each: func(workspace.Folder) {}}); err != nil {
		t.Fatal(err)
	}
	if feed.Changes().All {
		t.Skip("nothing is told of this file system")
	}
	write("a")
	write("a")
	write("b")
	must(os.Rename(at("b"), at("c")), os.WriteFile(filepath.Join(out, "d"), nil, 0o644), os.Rename(filepath.Join(out, "d"), at("d")))
	write("e")
	must(os.Remove(at("e")))
	f, err := os.Create(at("g"))
	must(err)
	defer f.Close()
	_, err = f.WriteString("x")
	must(err)
	want := map[string]workspace.Ops{
		"a": {Closed: 2}, "b": {Closed: 1, Moved: 1}, "c": {Moved: 1, MovedFrom: []string{"b"}}, "d": {Moved: 1, MovedFrom: []string{""}},
		"e": {Closed: 1, Removed: 1}, "g": {StillOpen: true},
	}
	if got := feed.Changes().Ops; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	must(f.Close())
	if got := feed.Changes().Ops; !reflect.DeepEqual(got, map[string]workspace.Ops{"g": {Closed: 1}}) {
		t.Errorf("later %+v", got)
	}
	if sum := (workspace.Ops{Closed: 1, StillOpen: true}).Then(workspace.Ops{Moved: 1, MovedFrom: []string{"x"}}); sum.StillOpen || sum.Closed != 1 || sum.Moved != 1 || len(sum.MovedFrom) != 1 {
		t.Errorf("sum %+v", sum)
	}
}
