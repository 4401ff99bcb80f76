package undo_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/undo"
	"coder/internal/tool"

	"pgregory.net/rapid"
)

// The paths that everyone fights over. Some are above others, so that files
// become directories and directories files.
var contested = []string{"a", "b", "d", "d/c", "d/e", "d/e/f", "g.sh"}

// someone changes a file in some way.
type change struct {
	path string
	do   string
	text string
	mode fs.FileMode
}

var changes = rapid.Custom(func(t *rapid.T) change {
	return change{
		path: rapid.SampledFrom(contested).Draw(t, "path"),
		do:   rapid.SampledFrom([]string{"write", "write", "write", "in place", "remove", "chmod", "link", "mkdir"}).Draw(t, "do"),
		text: rapid.SampledFrom([]string{"", "x", "y", "long text\n", "long teXt\n"}).Draw(t, "text"),
		mode: rapid.SampledFrom([]fs.FileMode{0o644, 0o755, 0o600, 0o444}).Draw(t, "mode"),
	}
})

// apply makes the change as far as that is possible; what stands in the way
// goes away.
func (w *world) apply(c change) {
	p := w.path(c.path)
	above := filepath.Dir(p)
	for i, letter := range c.path {
		if letter != '/' {
			continue
		}
		if info, err := os.Lstat(w.path(c.path[:i])); err == nil && !info.IsDir() {
			w.must(os.Remove(w.path(c.path[:i])))
		}
	}
	switch c.do {
	case "remove":
		w.must(os.RemoveAll(p))
		return
	case "chmod":
		if info, err := os.Lstat(p); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			mode := c.mode
			if info.IsDir() {
				mode |= 0o700
			}
			w.must(os.Chmod(p, mode))
		}
		return
	case "in place":
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o200 != 0 {
			w.must(os.WriteFile(p, []byte(c.text), 0o644))
			return
		}
	}
	w.must(os.RemoveAll(p))
	w.must(os.MkdirAll(above, 0o755))
	switch c.do {
	case "link":
		w.must(os.Symlink("b", p))
	case "mkdir":
		w.must(os.Mkdir(p, c.mode|0o700))
	default:
		w.must(os.WriteFile(p, []byte(c.text), 0o644))
		w.must(os.Chmod(p, c.mode))
	}
}

// model is what a bystander knows: for each path the states it went through
// and which was the last that a person made. Who makes again what a call had
// made has not made anything.
type model struct {
	*world
	states map[string][]string
	user   map[string]int             // index of the last state that a person made
	made   map[string]map[string]bool // states that calls, or undoing, made
	in     map[changeMark]bool        // what calls changed, by turn
	turn   int
	// vague are files whose call was cut off a moment ago: a person is not
	// expected to change them so soon, and would not be told from the call.
	vague map[string]bool
	now   map[string]string
}

type changeMark struct{ task, path string }

// note takes in what has become of the files, through whom.
func (m *model) note(byUser bool) {
	now := m.tree()
	paths := maps.Clone(m.now)
	maps.Copy(paths, now)
	for p := range paths {
		if now[p] == m.now[p] {
			continue
		}
		if m.states[p] == nil {
			m.states[p] = []string{m.now[p]}
		}
		m.states[p] = append(m.states[p], now[p])
		if m.made[p] == nil {
			m.made[p] = make(map[string]bool)
		}
		switch {
		case !byUser:
			m.made[p][now[p]] = true
			m.in[changeMark{m.task(), p}] = true
		case m.made[p][now[p]]:
			m.user[p] = 0
		default:
			m.user[p] = len(m.states[p]) - 1
		}
	}
	m.now = now
}

// intact checks that no path has gone back behind what a person last made of
// it. Directories are not looked at: what is in them is.
func (m *model) intact(what string) {
	now := m.tree()
	paths := maps.Clone(m.now)
	maps.Copy(paths, now)
	for p := range paths {
		if now[p] == m.now[p] || isDirState(now[p]) || isDirState(m.now[p]) || m.vague[p] {
			continue
		}
		states := m.states[p]
		if states == nil || !slices.Contains(states[m.user[p]:], now[p]) {
			m.t.Fatalf("%s made %s %q out of %q; its states: %q, the user's last: %d", what, p, now[p], m.now[p], states, m.user[p])
		}
	}
	m.note(false)
}

func isDirState(s string) bool { return len(s) > 4 && s[:4] == "dir " }

func (m *model) task() string { return fmt.Sprint("t", m.turn) }

func newModel(t *rapid.T, outer *testing.T) *model {
	dir, err := os.MkdirTemp(outer.TempDir(), "w")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ctx: outer.Context(), dir: filepath.Join(dir, "ws"), data: filepath.Join(dir, "data")}
	w.must(os.Mkdir(w.dir, 0o755))
	w.so, w.o = quick()
	w.clock = time.Now
	w.restart()
	m := &model{world: w, states: make(map[string][]string), user: make(map[string]int), made: make(map[string]map[string]bool), in: make(map[changeMark]bool), vague: make(map[string]bool)}
	for _, c := range rapid.SliceOfN(changes, 0, 8).Draw(t, "start") {
		w.apply(c)
	}
	if _, err := exec.LookPath("git"); err == nil && rapid.IntRange(0, 7).Draw(t, "in git") == 0 {
		w.must(os.WriteFile(w.path("tracked"), nil, 0o644))
		w.commit()
		w.restart()
	}
	m.now = w.tree()
	return m
}

func (m *model) edit(c change) {
	m.world.edit(m.task(), func() { m.apply(c) }, contested...)
	m.note(false)
}

func (m *model) shell(cs []change) {
	m.world.shell(m.task(), func() {
		for _, c := range cs {
			m.apply(c)
		}
	})
	m.note(false)
}

func (m *model) die(t *rapid.T, c change) {
	kind := tool.Write
	if rapid.Bool().Draw(t, "command") {
		kind = tool.Exec
	}
	longAgo := rapid.Bool().Draw(t, "long ago")
	m.clock = func() time.Time {
		if longAgo {
			return time.Now().Add(-time.Hour)
		}
		return time.Now()
	}
	b := m.begin(m.task(), "main", tool.Effect{Kind: kind, Target: c.path})
	for _, s := range b.e.Before {
		m.vague[s.Path] = m.vague[s.Path] || !longAgo
	}
	if kind == tool.Exec || onlyAt(c, m.world) {
		m.apply(c)
	}
	m.restart()
	if rapid.Bool().Draw(t, "recovered") {
		m.record("recovery", event.ToolCallCompleted{CallID: b.e.CallID, Tool: "some", TaskID: b.e.TaskID, Output: []byte("{}"), IsError: true})
	}
	m.note(false)
}

// onlyAt reports whether c touches nothing but the path it names.
func onlyAt(c change, w *world) bool {
	info, err := os.Lstat(w.path(c.path))
	above, aboveErr := os.Lstat(filepath.Dir(w.path(c.path)))
	return (err != nil || !info.IsDir()) && aboveErr == nil && above.IsDir()
}

// Whatever tools, commands and people do, in whatever order, undoing and
// redoing without force never takes a file back behind what a person last made
// of it, and never touches what no call ever changed.
func TestUserChangesAreIntact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, t)
		defer m.close()
		rt.Repeat(map[string]func(*rapid.T){
			"turn":  func(*rapid.T) { m.turn++ },
			"edit":  func(t *rapid.T) { m.edit(changes.Draw(t, "change")) },
			"shell": func(t *rapid.T) { m.shell(rapid.SliceOfN(changes, 0, 3).Draw(t, "changes")) },
			"user": func(t *rapid.T) {
				c := changes.Draw(t, "change")
				c.text += fmt.Sprint("mine ", len(m.log))
				m.apply(c)
				m.note(true)
			},
			"undo": func(t *rapid.T) {
				c := m.call()
				c.All = rapid.Bool().Draw(t, "all")
				_, err := undo.Undo(m.ctx, m.keeper, m.history, c)
				if err != nil && !errors.Is(err, undo.ErrNothingToUndo) {
					t.Fatal(err)
				}
				m.intact("undo")
			},
			"redo": func(t *rapid.T) {
				_, err := undo.Redo(m.ctx, m.keeper, m.history, m.call())
				if err != nil && !errors.Is(err, undo.ErrNothingToRedo) {
					t.Fatal(err)
				}
				m.intact("redo")
			},
			"force": func(t *rapid.T) {
				c := m.call()
				c.All, c.Force = rapid.Bool().Draw(t, "all"), true
				r, err := undo.Undo(m.ctx, m.keeper, m.history, c)
				if err != nil && !errors.Is(err, undo.ErrNothingToUndo) {
					t.Fatal(err)
				}
				forced := m.tree()
				if err == nil && len(r.Failed) == 0 && len(r.Restored)+len(r.Removed) > 0 && rapid.Bool().Draw(t, "and back") {
					m.redo("force")
					if after := m.tree(); !maps.Equal(after, m.now) {
						t.Fatalf("redoing %+v gave\n%q\nwant\n%q\nundone\n%q", r, after, m.now, forced)
					}
				}
				paths := maps.Clone(m.now)
				maps.Copy(paths, forced)
				for p := range m.states {
					paths[p] = ""
				}
				for p := range paths {
					if m.now[p] != forced[p] || m.in[changeMark{r.Turn.ID, p}] {
						m.user[p] = 0 // the person has let go of it
					}
				}
				m.note(false)
			},
			"restart": func(*rapid.T) { m.restart() },
			"die":     func(t *rapid.T) { m.die(t, changes.Draw(t, "change")) },
		})
	})
}

// With nobody else about, undoing all turns gives back the exact tree at the
// start, and redoing them the one at the end.
func TestUndoingAllGivesTheStart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, t)
		defer m.close()
		trees := []map[string]string{m.tree()}
		for range rapid.IntRange(1, 4).Draw(rt, "turns") {
			m.turn++
			for range rapid.IntRange(1, 3).Draw(rt, "calls") {
				if rapid.Bool().Draw(rt, "command") {
					m.shell(rapid.SliceOfN(changes, 0, 4).Draw(rt, "changes"))
				} else {
					m.edit(changes.Draw(rt, "change"))
				}
			}
			if now := m.tree(); !maps.Equal(now, trees[len(trees)-1]) {
				trees = append(trees, now)
			}
		}
		walk(rt, m, trees)
	})
}

// walk undoes everything, redoes everything, and undoes everything again.
func walk(t *rapid.T, m *model, trees []map[string]string) {
	back := func() {
		for {
			r, err := undo.Undo(m.ctx, m.keeper, m.history, m.asked([]string{"all"}))
			if errors.Is(err, undo.ErrNothingToUndo) {
				break
			}
			if err != nil || len(r.Unchanged)+len(r.Lost)+len(r.Failed) > 0 {
				t.Fatalf("undo: %+v, %v", r, err)
			}
		}
		m.wantTree(trees[0])
	}
	back()
	for {
		m.restart()
		r, err := undo.Redo(m.ctx, m.keeper, m.history, m.call())
		if errors.Is(err, undo.ErrNothingToRedo) {
			break
		}
		if err != nil || len(r.Unchanged)+len(r.Lost)+len(r.Failed) > 0 {
			t.Fatalf("redo: %+v, %v", r, err)
		}
	}
	m.wantTree(trees[len(trees)-1])
	m.restart()
	back()
}
