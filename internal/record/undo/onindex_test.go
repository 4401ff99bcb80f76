package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/record/gitstate"
	"coder/internal/record/undo"
)

// foundState saves the state of the repository that holds the workspace.
func (w *world) stateOf([]event.FileState, func() map[string]bool) ([]byte, error) {
	r, _ := gitstate.Find(w.dir)
	return r.Save(nil)
}

// filesOf are the files of a start, in order.
func (w *world) filesOf(start string) []event.FileState {
	w.t.Helper()
	all, err := w.keeper.Files(w.ctx, start)
	w.must(err)
	slices.SortFunc(all, func(a, b event.FileState) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// A start that is told by the index of git has the files that one without the index has,
// whatever differs between them and the index, and says so after the index has changed.
func TestStartOnAnIndex(t *testing.T) {
	needGit(t)
	for name, change := range map[string]func(w *world){
		"nothing":       func(*world) {},
		"changed files": func(w *world) { w.put("d/f1", "changed"); w.remove("d/f2"); w.put("new/file", "x") },
		"modes": func(w *world) {
			w.must(os.Chmod(w.path("d/f1"), 0o600))
			w.must(os.Chmod(w.path("d/f3"), 0o755))
			w.must(os.Chmod(w.path("d"), 0o700))
		},
		"a removed folder":  func(w *world) { w.remove("e") },
		"a file for folder": func(w *world) { w.remove("e"); w.put("e", "file") },
		"staged":            func(w *world) { w.put("d/f1", "staged"); w.put("s", "staged"); w.git("add", "-A") },
		"split index":       func(w *world) { w.git("update-index", "--split-index"); w.put("s", ""); w.git("add", "s") },
		"index version 4":   func(w *world) { w.git("update-index", "--index-version", "4") },
		"without trees":     func(w *world) { w.remove(".git/index"); w.git("add", "-A") },
		"without an index":  func(w *world) { w.remove(".git/index") },
		"damaged index":     func(w *world) { w.must(os.Truncate(w.path(".git/index"), 1000)) },
		"sparse index": func(w *world) {
			w.git("sparse-checkout", "init", "--cone", "--sparse-index")
			w.git("sparse-checkout", "set", "d")
		},
		"a conflict": func(w *world) {
			w.git("checkout", "-q", "-b", "side")
			w.put("d/f1", "one")
			w.git("commit", "-qam", "one")
			w.git("checkout", "-q", "-")
			w.put("d/f1", "two")
			w.git("commit", "-qam", "two")
			w.git("merge-tree", "side", "HEAD", "HEAD")
			w.git("read-tree", "-m", "side~1", "HEAD", "side")
		},
		"a work tree in it": func(w *world) { w.git("worktree", "add", "-q", "linked"); w.dir = w.path("linked") },
		"a folder of it":    func(w *world) { w.dir = w.path("d") },
	} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(name+" "+format, func(t *testing.T) {
				w := newWorld(t)
				w.countGit() // has it trust the settings
				w.git("init", "-q", "--object-format="+format)
				for i := range 30 {
					w.put(fmt.Sprint("d/f", i), fmt.Sprint("file ", i))
					w.put(fmt.Sprintf("e/g%d/h", i), fmt.Sprint("other ", i))
				}
				w.must(os.Chmod(w.path("d/f4"), 0o755))
				w.must(os.Symlink("d/f1", w.path("link")))
				w.commit()
				change(w)
				w.restart()
				want := w.filesOf(w.start(false))
				onIndex := undo.StartName("index")
				w.must(w.keeper.SaveStart(w.ctx, onIndex, false, w.stateOf))
				w.git("read-tree", "--empty")
				w.restart()
				got := w.filesOf(onIndex)
				for i := range max(len(got), len(want)) {
					if len(got) != len(want) || got[i] != want[i] {
						t.Fatalf("%d files, want %d; at first %v, want %v", len(got), len(want), got[i:min(i+1, len(got))], want[i:min(i+1, len(want))])
					}
				}
				w.o.LastTree = onIndex
				w.must(os.WriteFile(filepath.Join(w.dir, "later"), nil, 0o644))
				w.restart()
				if all := w.filesOf(w.start(false)); len(all) != len(want)+1 {
					t.Errorf("after a restart there are %d files, want %d", len(all), len(want)+1)
				}
			})
		}
	}
}
