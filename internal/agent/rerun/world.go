package rerun

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
)

// maxFile is how large a file may be that is put into a copy.
const maxFile = 256 << 20

// Files is what is known of files.
type Files interface {
	Contents
	// Files lists all files of a tree that was kept.
	Files(ctx context.Context, tree string) ([]event.FileState, error)
}

// World is what the files of a session were at its beginning, and what others
// than its calls did to them.
type World struct {
	Start map[string]event.FileState // by path
	// Whole says that these are all files there were.
	Whole bool
	Tree  string // the first state of all files that was kept; "" if none was
	// Unsure are files that may have been others: they were changed since, and what
	// they were is not known.
	Unsure []string

	later map[uint64][]event.FileState // what others left, by the record after which
	kept  Contents
	root  string // of the copy
	copy  *workspace.Workspace

	mu   sync.Mutex        // guards used
	used map[string][]byte // contents that others left, and calls that were not made again, by hash
}

// NewWorld is a world that is known already.
func NewWorld(start []event.FileState, later map[uint64][]event.FileState) *World {
	w := &World{Start: make(map[string]event.FileState), Whole: true, later: later}
	for _, s := range start {
		w.Start[s.Path] = s
	}
	return w
}

// Again is the same world, to be laid out once more.
func (w *World) Again() *World {
	return &World{Start: w.Start, Whole: w.Whole, Tree: w.Tree, Unsure: w.Unsure, later: w.later}
}

// tracking reads from records what was where.
type tracking struct {
	*World
	known  map[string]event.FileState
	listed map[string]bool // paths that stood in a tree
	tree   string          // the last
	seq    uint64          // of the last record before that is held against another
	left   *leftAlone
	kept   Files
	names  map[event.FileState]string
}

// Trace finds out from the whole record what the files of a take of its beginning
// were.
func Trace(ctx context.Context, whole, take *Take, kept Files) (*World, error) {
	w := tracking{
		World: &World{Start: make(map[string]event.FileState), later: make(map[uint64][]event.FileState), kept: kept},
		known: make(map[string]event.FileState), listed: make(map[string]bool), kept: kept, names: make(map[event.FileState]string),
		left: newLeftAlone(),
	}
	before := make(map[string]uint64) // the record before the request of a call
	for _, r := range whole.Records {
		w.left.turn(r)
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			before[e.CallID] = w.seq
			for _, s := range e.Before {
				w.was(ctx, s, w.seq)
			}
			w.folders(ctx, e.Before)
			w.Tree = cmp.Or(w.Tree, e.Tree)
			if e.Tree != "" && e.Tree != w.tree {
				w.all(ctx, e.Tree)
			}
		case event.ToolCallCompleted:
			changes := e.Changes
			for i := 0; i < len(changes); i++ {
				if strings.HasPrefix(changes[i].Before.Hash, "tree:") || strings.HasPrefix(changes[i].After.Hash, "tree:") {
					list, err := kept.Expand(ctx, changes[i])
					if err != nil {
						return nil, fmt.Errorf("what %s held was not kept: %w", changes[i].Before.Path, err)
					}
					changes = slices.Concat(changes[:i], list, changes[i+1:])
					i += len(list) - 1
				}
			}
			for _, c := range changes {
				w.was(ctx, c.Before, before[e.CallID])
				w.known[c.After.Path] = c.After
				w.left.change(r.Task, c.Before)
			}
			w.met(ctx, e, before[e.CallID])
			for _, s := range e.Saw {
				w.was(ctx, s, before[e.CallID])
			}
		}
		if !passedOver(r.Event) {
			w.seq = r.Seq
		}
	}
	for name, seq := range w.left.since { // nothing met it again, so what it held does not matter
		w.later[seq] = append(w.later[seq], standIn(name))
	}
	maps.DeleteFunc(w.later, func(seq uint64, _ []event.FileState) bool {
		return len(take.Records) == 0 || seq >= take.Records[len(take.Records)-1].Seq
	})
	return w.World, ctx.Err()
}

// was takes in what a file was when the record after seq was made.
func (w *tracking) was(ctx context.Context, s event.FileState, seq uint64) {
	if s.Path == "" {
		return
	}
	before, ok := w.known[s.Path]
	if since, left := w.left.since[s.Path]; left && (!ok || w.name(ctx, before) != w.name(ctx, s)) {
		seq = since
	}
	delete(w.left.since, s.Path)
	switch {
	case !ok && w.listed[s.Path]: // it was listed, so known must be set
	case !ok:
		if !w.Whole || s.Hash == "" {
			w.Start[s.Path] = s
		} else {
			w.later[seq] = append(w.later[seq], s)
		}
	case w.name(ctx, before) != w.name(ctx, s):
		w.later[seq] = append(w.later[seq], s)
	case s.Mode == 0: // it says less
		return
	case w.Start[s.Path] == before: // it says more
		w.Start[s.Path] = s
	}
	w.known[s.Path] = s
}

// folders takes in that the folders of files to be made were there, but for those that
// are to be made, too.
func (w *tracking) folders(ctx context.Context, before []event.FileState) {
	for _, s := range before {
		dir := path.Dir(s.Path)
		missing := func(s event.FileState) bool { return s.Hash == "" && !s.Lost && strings.HasPrefix(dir+"/", s.Path+"/") }
		if _, known := w.known[dir]; !known && dir != "." && s.Hash == "" && fs.ValidPath(dir) && !slices.ContainsFunc(before, missing) {
			w.was(ctx, event.FileState{Path: dir, Hash: "dir"}, w.seq)
		}
	}
}

// all takes in all files as they were before the record that comes next.
func (w *tracking) all(ctx context.Context, tree string) {
	list, err := w.kept.Files(ctx, tree)
	if err != nil {
		return // what was not kept is found out when it is missed
	}
	w.tree = tree
	there := make(map[string]bool, len(list))
	for _, s := range list {
		there[s.Path] = true
		w.was(ctx, s, w.seq)
		w.listed[s.Path] = true
	}
	for name := range w.listed {
		if !there[name] && w.known[name].Hash != "" {
			w.was(ctx, event.FileState{Path: name}, w.seq)
		}
	}
	w.Whole = true
}

// name tells contents apart, by whatever name they were kept.
func (w *tracking) name(ctx context.Context, s event.FileState) string {
	switch {
	case s.Link != "":
		return "link:" + s.Link
	case !strings.HasPrefix(s.Hash, "git:"):
		return s.Hash
	}
	key := event.FileState{Path: s.Path, Hash: s.Hash, Size: s.Size}
	if name, ok := w.names[key]; ok {
		return name
	}
	name := s.Hash
	if data, err := w.kept.Content(ctx, s, maxFile); err == nil {
		name = hash(data)
	}
	w.names[key] = name
	return name
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// MissingError lists files whose contents cannot be had any more.
type MissingError struct{ Files []string }

func (e *MissingError) Error() string {
	if i := slices.IndexFunc(e.Files, func(name string) bool { return path.IsAbs(name) }); i >= 0 {
		return fmt.Sprintf("the files that the session began with cannot be had: %s lies outside of the workspace, in a folder of --add-dir, which is not copied", e.Files[i])
	}
	list := e.Files
	more := ""
	if len(list) > shownMissing {
		list, more = list[:shownMissing], fmt.Sprintf(" and %d more", len(list)-shownMissing)
	}
	return fmt.Sprintf("the files that the session began with cannot be had: what %s held was not kept, and neither git nor the workspace has it any more", strings.Join(list, ", ")+more)
}

const shownMissing = 5

// LayOut puts the files that the session began with into the copy, and gets the
// later ones ready. Nothing is written anywhere else.
func (w *World) LayOut(ctx context.Context, copy *workspace.Workspace, kept Contents) error {
	w.copy, w.root, w.kept = copy, copy.Root(), kept
	if err := w.check(); err != nil {
		return err
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(w.Start)) {
		err := w.place(ctx, w.Start[name])
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errMissing):
			missing = append(missing, name)
		case err != nil:
			return err
		}
	}
	w.used = make(map[string][]byte)
	for _, seq := range slices.Sorted(maps.Keys(w.later)) {
		for _, s := range w.later[seq] {
			if _, err := w.read(ctx, s); isFile(s) && err != nil && !slices.Contains(missing, s.Path) {
				missing = append(missing, s.Path)
			}
		}
	}
	if len(missing) > 0 {
		return &MissingError{missing}
	}
	return nil
}

// check refuses, before anything is laid out, what git would take for a repository.
func (w *World) check() error {
	all := slices.Collect(maps.Values(w.Start))
	for _, list := range w.later {
		all = append(all, list...)
	}
	for _, s := range all {
		if err := checkState(s); err != nil {
			return err
		}
	}
	return nil
}

// checkState refuses to lay out what git would obey. What is not there may be called
// anything; a worktree's link to its repository is made for the copy.
func checkState(s event.FileState) error {
	if s.Path == gitName || s.Hash == "" && !s.Lost {
		return nil
	}
	if err := repofile.CheckLayout(s.Path, s.Link); err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	return nil
}

// gitName is where git looks for the repository of a folder.
const gitName = ".git"

// errMissing reports a content that cannot be had.
var errMissing = errors.New("it was not kept")

func isFile(s event.FileState) bool {
	return s.Lost || s.Hash != "" && s.Hash != "dir" && s.Link == ""
}

func (w *World) read(ctx context.Context, s event.FileState) ([]byte, error) {
	data, err := []byte(byOthers), error(nil)
	if s.Hash != standIn(s.Path).Hash {
		data, err = w.kept.Content(ctx, s, maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMissing, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used != nil {
		w.used[hash(data)] = data
	}
	return data, nil
}

// apply does what others did to files after a record.
func (w *World) apply(ctx context.Context, seq uint64) error {
	for _, s := range w.later[seq] {
		if err := w.place(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// put leaves files as a call on record left them.
func (w *World) put(ctx context.Context, changes []event.FileChange) error {
	for _, c := range changes {
		list := []event.FileChange{c}
		if strings.HasPrefix(c.Before.Hash, "tree:") || strings.HasPrefix(c.After.Hash, "tree:") {
			var err error
			if list, err = w.kept.Expand(ctx, c); err != nil {
				return err
			}
		}
		for _, one := range list {
			if err := w.place(ctx, one.After); err != nil {
				return err
			}
		}
	}
	return nil
}

// place makes a file of the copy what s says.
func (w *World) place(ctx context.Context, s event.FileState) error {
	if path.IsAbs(s.Path) || !fs.ValidPath(s.Path) {
		return fmt.Errorf("%w: %s lies outside of the workspace", errMissing, s.Path)
	}
	if err := checkState(s); err != nil {
		return err
	}
	if repofile.CheckLayout(s.Path, "") != nil { // gone, or made for the copy
		return nil
	}
	kept := s
	s.Path = withoutKeys().Text(s.Path) // as calls name it that are on record without keys
	mode := fs.FileMode(cmp.Or(s.Mode, 0o644))
	if s.Hash != "" || s.Lost {
		if err := w.makeDirs(path.Dir(s.Path)); err != nil {
			return err
		}
	}
	switch {
	case s.Link != "":
		return w.copy.RestoreLink(s.Path, s.Link, nil)
	case s.Hash == "dir":
		if err := w.makeDirs(s.Path); err != nil || s.Mode == 0 {
			return err
		}
		return w.copy.Chmod(s.Path, mode)
	case s.Hash == "" && !s.Lost:
		if _, err := w.copy.Lstat(s.Path); err != nil { // nor the folder that it would be in
			return nil
		}
		return w.copy.Remove(s.Path, nil)
	}
	data, err := w.read(ctx, kept)
	if err != nil {
		return err
	}
	if info, err := w.copy.Lstat(s.Path); s.Mode == 0 && err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	return w.copy.Restore(s.Path, bytes.NewReader(data), mode, nil)
}

// withoutKeys is how names of files are told, and called in a copy: the same as
// in calls, which are on record without keys.
var withoutKeys = secret.Shapes

func (w *World) makeDirs(dir string) error {
	if dir == "." {
		return nil
	}
	if info, err := w.copy.Lstat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := w.makeDirs(path.Dir(dir)); err != nil {
		return err
	}
	return w.copy.Mkdir(dir, 0o755)
}
