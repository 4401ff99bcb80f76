package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"coder/internal/agent/verify"
	"coder/internal/host/disk"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/undo"
	"coder/internal/report/provenance"
	"coder/internal/slash"
	"coder/internal/tool/git"
)

// Archive reads what a user's sessions recorded, and the files of that time.
type Archive struct{ *Keys }

// place is a folder with sessions that may have changed a file.
type place struct {
	*Store
	ws   *workspace.Workspace
	name string // the file's name there
	same bool   // the same file, not another work tree's
	from string // where that is, seen from this workspace; "" if it is this one
}

// tracing finds the origin of a file's lines, place by place.
type tracing struct {
	*Archive
	*slash.Provenance
	now     []byte
	line    int                  // the line to explain; zero for all
	names   []string             // the file's earlier names
	unknown []*provenance.Change // calls that may have changed the file
}

// asked reports whether a line, counted from zero, is to be explained and its writer is unknown.
func (t *tracing) asked(i int) bool {
	return (t.line == 0 || i == t.line-1) && !t.Lines[i].BySession()
}

// left reports whether any line's writer is still unknown.
func (t *tracing) left() bool {
	for i := range t.Lines {
		if t.asked(i) {
			return true
		}
	}
	return false
}

// in searches a place's sessions for the writers of the remaining lines.
func (t *tracing) in(ctx context.Context, at place) error {
	if _, err := fs.ReadDir(repofile.OwnDir(at.Dir("log")), "."); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.cannotRead(at.root, err)
	}
	var more []string
	changes := func(name string) []*provenance.Change { return at.changes(ctx, name, more...) }
	kept := t.keptIn(at.Store, at.ws)
	lines, names, err := provenance.Trace(ctx, at.name, t.now, t.line, changes(at.name), kept, nil, changes)
	if err != nil {
		return err
	}
	earlier := t.Lines
	t.Lines = lines
	if t.left() { // the file may have had another name, or a call was cut off
		gone := func(name string) bool { _, err := at.ws.Lstat(name); return errors.Is(err, fs.ErrNotExist) }
		var unknown []*provenance.Change
		if more, unknown = at.survey(ctx, at.name, gone); len(more) > 0 {
			if t.Lines, names, err = provenance.Trace(ctx, at.name, t.now, t.line, changes(at.name), kept, gone, changes); err != nil {
				return err
			}
		}
		if at.same {
			t.unknown = append(t.unknown, unknown...)
		}
	}
	if at.from == "" {
		t.names = names
	} else {
		t.Lines = t.joined(earlier, t.Lines, at.from)
	}
	t.Unread = append(t.Unread, at.Unread()...)
	t.tell(ctx, at)
	return nil
}

// joined adds another place's findings about the remaining lines. A call did not
// write a line that is older than it, according to git or to what calls found.
func (t *tracing) joined(lines, there []provenance.Line, from string) []provenance.Line {
	t.Lines = lines
	for i, l := range there {
		if !t.asked(i) || !l.BySession() {
			continue
		}
		was := lines[i]
		if t.Older(i, l.By.Time) || !was.Until.IsZero() && was.Until.Before(l.By.Time) {
			continue
		}
		l.By.Place = from
		lines[i] = l
	}
	return lines
}

// tell adds the stories behind a place's calls that wrote the lines to explain.
func (t *tracing) tell(ctx context.Context, at place) {
	bySession := make(map[string][]*provenance.Change)
	for i, l := range t.Lines {
		if t.line > 0 && i != t.line-1 || !l.BySession() || l.By.Place != at.from {
			continue
		}
		if list := bySession[l.By.Session]; len(list) == 0 || list[len(list)-1] != l.By {
			bySession[l.By.Session] = append(list, l.By)
		}
	}
	for id, list := range bySession {
		stories, err := provenance.Stories(at.vouched(ctx, id, list), list, verify.IsCheck)
		if err != nil {
			at.warn(err.Error())
		}
		for c, story := range stories {
			t.Stories[c] = story
		}
	}
}

// elsewhere returns the other places whose sessions may have changed a file: the
// folders around it, and around it in the repository's other work trees. Only
// folders in which this user has worked count, so each costs only a lookup.
func (t *tracing) elsewhere(ctx context.Context, o git.Options, name string) (places []place) {
	if filepath.IsAbs(name) || t.Home == "" {
		return nil
	}
	root, err := filepath.EvalSymlinks(t.Root)
	if err != nil {
		return nil
	}
	file := filepath.Join(root, name)
	seen := []string{t.Root, root}
	look := func(file string, same bool) {
		for at := filepath.Dir(file); ; at = filepath.Dir(at) {
			if !slices.Contains(seen, at) && t.worked(at) {
				if p, ok := t.placeAt(at, file, same); ok {
					places = append(places, p)
				}
			}
			if seen = append(seen, at); at == filepath.Dir(at) {
				return
			}
		}
	}
	look(filepath.Join(t.Root, name), true)
	look(file, true)
	own, trees := git.Trees(ctx, o)
	within, err := filepath.Rel(own, file)
	if err != nil {
		return places
	}
	for _, tree := range trees {
		look(filepath.Join(tree, within), false)
	}
	return places
}

// worked reports whether this user has had sessions in a folder.
func (a *Archive) worked(root string) bool {
	_, err := os.Lstat(filepath.Join(a.Home, workspacesDir, shortHash(root)))
	return err == nil
}

// placeAt returns a folder as a place, if it still has sessions.
func (t *tracing) placeAt(root, file string, same bool) (p place, ok bool) {
	err := readable(root)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false
	}
	var ws *workspace.Workspace
	if err == nil {
		ws, err = workspace.Open(root)
	}
	if err != nil {
		t.cannotRead(root, err)
		return p, false
	}
	name, err := filepath.Rel(root, file)
	from, wrong := filepath.Rel(t.Root, root)
	if err = errors.Join(err, wrong); err != nil {
		ws.Close()
		return p, false
	}
	return place{Store: t.storeOf(root), ws: ws, name: filepath.ToSlash(name), same: same, from: filepath.ToSlash(from)}, true
}

func (t *tracing) cannotRead(root string, why error) {
	t.Unread = append(t.Unread, fmt.Sprintf("the sessions of %s: %v", root, why))
}

// readable returns an error if a workspace's logs are unreadable. It rejects links, which may lead anywhere.
func readable(root string) error {
	dir := root
	for _, name := range []string{".coder", "log"} {
		dir = filepath.Join(dir, name)
		info, err := os.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("not a folder: %s", dir)
		}
		if err != nil {
			return err
		}
	}
	_, err := fs.ReadDir(repofile.Below(root), ".coder/log")
	return err
}

// storeOf returns another workspace's store, for reading.
func (a *Archive) storeOf(root string) *Store {
	s := &Store{root: root, dir: filepath.Join(root, ".coder"), home: a.Home, warn: a.warn, Key: a.Store().Key, short: make(map[string]string)}
	s.contents = sync.OnceValue(func() *undo.Store {
		return undo.OpenStore(s.Dir("undo"), undo.StoreOptions{Now: a.Env.Now, Private: s.PrivateUndo()})
	})
	s.logs = jsonl.Open(s.Dir("log"), jsonl.Options{Disk: disk.System, Short: s.fallsShort, Heads: s.heads(a.Env.Now)})
	s.Logs = s.logs
	return s
}
