package undo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/record/undo"
)

// blobsIn is everything below a folder, one text after the other.
func blobsIn(t *testing.T, dir string) (all string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		text, err := os.ReadFile(path)
		all += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const awsKey = "AKIA" + "ABCDEFGHIJKLMNOP"

// What may hold secrets is kept apart, whatever tells that, and comes back as
// other files do.
func TestSecretContentsAreKeptApart(t *testing.T) {
	secrets := map[string]string{
		".env": "DB=hunter2\n", "deploy/id_rsa": "hunter2 key\n", "notes.txt": "use " + awsKey + "\n", "private/plan.txt": "hunter2 plan\n",
	}
	w := newWorld(t)
	w.so.IsSecret = func(name string) bool { return strings.HasPrefix(name, "private/") }
	w.restart()
	w.put("plain.txt", "plain words\n")
	for name, text := range secrets {
		w.put(name, text)
	}
	before := w.tree()
	w.shell("t1", func() { w.put("other", "made\n") })
	w.edit("t2", func() { w.put(".env", "DB=hunter2 and more\n") }, ".env")
	w.shell("t3", func() {
		for name := range secrets {
			w.remove(name)
		}
		w.remove("plain.txt")
	})
	shared, private := blobsIn(t, w.data), blobsIn(t, w.so.Private)
	for _, word := range []string{"hunter2", awsKey} {
		if strings.Contains(shared, word) || !strings.Contains(private, word) {
			t.Errorf("%q lies with the others: %v, apart: %v", word, strings.Contains(shared, word), strings.Contains(private, word))
		}
	}
	if !strings.Contains(shared, "plain words") || strings.Contains(private, "plain words") {
		t.Error("what holds no secret is kept apart")
	}
	w.restart()
	for range 3 {
		if r := w.undo("all"); len(r.Lost)+len(r.Unchanged)+len(r.Failed) > 0 {
			t.Errorf("%+v", r)
		}
	}
	w.wantTree(before)
	for range 3 {
		w.redo("all")
	}
	if _, err := os.Stat(w.path(".env")); err == nil {
		t.Error("redo left .env")
	}
}

// A store of before has everything in one place: it goes on working, and what is
// seen again of secrets moves.
func TestContentsOfAnOlderStoreMove(t *testing.T) {
	w := newWorld(t)
	old := undo.OpenStore(w.data, undo.StoreOptions{NoSync: true})
	hash, err := old.Put("under another name", strings.NewReader("DB=hunter2\n"))
	w.must(err)
	w.must(old.Commit())
	if err := old.Close(); err != nil || !w.store.Has(hash) {
		t.Fatalf("what is there is not found: %v", err)
	}
	w.put(".env", "DB=hunter2\n")
	w.edit("t1", func() { w.put(".env", "") }, ".env")
	if text := blobsIn(t, filepath.Join(w.data, "objects")); strings.Contains(text, "hunter2") {
		t.Error("it did not move")
	}
	w.restart()
	if r := w.undo(); len(r.Restored) != 1 {
		t.Errorf("%+v", r)
	}
}

// Without a place for them such contents are not kept, and that is said.
func TestSecretContentsWithoutAPlaceAreNotKept(t *testing.T) {
	for name, private := range map[string]string{"none": "", "cannot be made": "/proc/none"} {
		w := newWorld(t)
		w.so.Private = private
		w.restart()
		w.put(".env", "DB=hunter2\n")
		w.put("a", "a\n")
		w.edit("t1", func() { w.put(".env", "") }, ".env")
		w.shell("t2", func() { w.put("a", "b\n") })
		if text := blobsIn(t, w.data); strings.Contains(text, "hunter2") {
			t.Errorf("%s: kept with the others", name)
		}
		if len(w.warned) == 0 {
			t.Errorf("%s: nothing is said", name)
		}
		if r := w.undo("all"); len(r.Restored) != 1 {
			t.Errorf("%s: the other file is not brought back: %+v", name, r)
		}
	}
}
