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
	"coder/internal/core/message"
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

// sessionPlace is a folder with sessions that may have changed a file.
type sessionPlace struct {
	*Store
	ws          *workspace.Workspace
	name        string // the file's name there
	sameFile    bool   // the same file, not another work tree's
	displayPath string // where that is, seen from this workspace; "" if it is this one
}

// lineTracer finds the origin of a file's lines, place by place.
type lineTracer struct {
	*Archive
	*slash.Provenance
	content      []byte
	wantedLine   int                  // the line to explain; zero for all
	formerNames  []string             // the file's earlier names
	unknownCalls []*provenance.Change // calls that may have changed the file
}

// isOpenLine reports whether a line, counted from zero, is to be explained and its writer is unknown.
func (t *lineTracer) isOpenLine(i int) bool {
	return (t.wantedLine == 0 || i == t.wantedLine-1) && !t.Lines[i].FromCall()
}

// hasOpenLines reports whether any line's writer is still unknown.
func (t *lineTracer) hasOpenLines() bool {
	for i := range t.Lines {
		if t.isOpenLine(i) {
			return true
		}
	}
	return false
}

// searchPlace searches a place's sessions for the writers of the remaining lines.
func (t *lineTracer) searchPlace(ctx context.Context, at sessionPlace) error {
	if _, err := fs.ReadDir(repofile.OwnDir(at.Path("log")), "."); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.noteUnreadable(at.root, err)
	}
	var more []string
	changes := func(name string) []*provenance.Change { return at.fileChanges(ctx, name, more...) }
	kept := t.savedContentsIn(at.Store, at.ws)
	lines, names, err := provenance.Trace(ctx, at.name, t.content, t.wantedLine, changes(at.name), kept, nil, changes)
	if err != nil {
		return err
	}
	earlier := t.Lines
	t.Lines = lines
	if t.hasOpenLines() { // the file may have had another name, or a call was cut off
		gone := func(name string) bool { _, err := at.ws.Lstat(name); return errors.Is(err, fs.ErrNotExist) }
		var unknown []*provenance.Change
		if more, unknown = at.findDeleted(ctx, at.name, gone); len(more) > 0 {
			if t.Lines, names, err = provenance.Trace(ctx, at.name, t.content, t.wantedLine, changes(at.name), kept, gone,
				changes); err != nil {
				return err
			}
		}
		if at.sameFile {
			t.unknownCalls = append(t.unknownCalls, unknown...)
		}
	}
	if at.displayPath == "" {
		t.formerNames = names
	} else {
		t.Lines = t.mergeLines(earlier, t.Lines, at.displayPath)
	}
	t.Unreadable = append(t.Unreadable, at.UnreadSessions()...)
	t.addStories(ctx, at)
	return nil
}

// mergeLines adds another place's findings about the remaining lines. A call did not
// write a line that is older than it, according to git or to what calls found.
func (t *lineTracer) mergeLines(lines, there []provenance.Line, from string) []provenance.Line {
	t.Lines = lines
	for i, l := range there {
		if !t.isOpenLine(i) || !l.FromCall() {
			continue
		}
		was := lines[i]
		if t.CommittedBefore(i, l.Change.Time) || !was.FoundAt.IsZero() && was.FoundAt.Before(l.Change.Time) {
			continue
		}
		l.Change.Place = from
		lines[i] = l
	}
	return lines
}

// addStories adds the stories behind a place's calls that wrote the lines to explain.
func (t *lineTracer) addStories(ctx context.Context, at sessionPlace) {
	bySession := make(map[string][]*provenance.Change)
	for i, l := range t.Lines {
		if t.wantedLine > 0 && i != t.wantedLine-1 || !l.FromCall() || l.Change.Place != at.displayPath {
			continue
		}
		if list := bySession[l.Change.Session]; len(list) == 0 || list[len(list)-1] != l.Change {
			bySession[l.Change.Session] = append(list, l.Change)
		}
	}
	for id, list := range bySession {
		stories, err := provenance.Explain(at.markVouched(ctx, id, list), list, verify.IsCheck)
		if err != nil {
			at.warn(err.Error())
		}
		for c, story := range stories {
			t.Explanations[c] = story
		}
	}
}

// otherPlaces returns the other places whose sessions may have changed a file: the
// folders around it, and around it in the repository's other work trees. Only
// folders in which this user has worked count, so each costs only a lookup.
func (t *lineTracer) otherPlaces(ctx context.Context, o git.Options, name string) (places []sessionPlace) {
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
			if !slices.Contains(seen, at) && t.hadSessions(at) {
				if p, ok := t.openPlace(at, file, same); ok {
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
	own, trees := git.Worktrees(ctx, o)
	within, err := filepath.Rel(own, file)
	if err != nil {
		return places
	}
	for _, tree := range trees {
		look(filepath.Join(tree, within), false)
	}
	return places
}

// hadSessions reports whether this user has had sessions in a folder.
func (a *Archive) hadSessions(root string) bool {
	_, err := os.Lstat(filepath.Join(a.Home, workspacesDir, shortHash(root)))
	return err == nil
}

// openPlace returns a folder as a place, if it still has sessions.
func (t *lineTracer) openPlace(root, file string, same bool) (p sessionPlace, ok bool) {
	err := checkReadable(root)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false
	}
	var ws *workspace.Workspace
	if err == nil {
		ws, err = workspace.Open(root)
	}
	if err != nil {
		t.noteUnreadable(root, err)
		return p, false
	}
	name, err := filepath.Rel(root, file)
	from, wrong := filepath.Rel(t.Root, root)
	if err = errors.Join(err, wrong); err != nil {
		ws.Close()
		return p, false
	}
	return sessionPlace{Store: t.workspaceStore(root), ws: ws, name: filepath.ToSlash(name), sameFile: same,
		displayPath: filepath.ToSlash(from)}, true
}

func (t *lineTracer) noteUnreadable(root string, why error) {
	t.Unreadable = append(t.Unreadable, fmt.Sprintf("the sessions of %s: %v", root, why))
}

// checkReadable returns an error if a workspace's logs are unreadable. It rejects links, which may lead anywhere.
func checkReadable(root string) error {
	dir := root
	for _, name := range []string{".coder", "log"} {
		dir = filepath.Join(dir, name)
		info, err := os.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = message.Errorf("not a folder: %s", dir)
		}
		if err != nil {
			return err
		}
	}
	_, err := fs.ReadDir(repofile.NewRoot(root), ".coder/log")
	return err
}

// workspaceStore returns another workspace's store, for reading.
func (a *Archive) workspaceStore(root string) *Store {
	s := &Store{root: root, dir: filepath.Join(root, ".coder"), home: a.Home, warn: a.warn, SealKey: a.Store().SealKey,
		truncated: make(map[string]string)}
	s.undoStore = sync.OnceValue(func() *undo.Store {
		return undo.OpenStore(s.Path("undo"), undo.StoreOptions{Now: a.Env.Now, Private: s.PrivateUndo()})
	})
	s.logs = jsonl.Open(s.Path("log"), jsonl.Options{Disk: disk.System, OnTruncated: s.recordTruncated,
		Heads: s.headStore(a.Env.Now)})
	s.Logs = s.logs
	return s
}
