package rerun

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/host/repofile"
)

// maxFile is how large a file may be that is put into a copy.
const maxFile = 256 << 20

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
	copy  *os.Root

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

// MissingError lists files whose contents cannot be had any more.
type MissingError struct{ Files []string }

func (e *MissingError) Error() string {
	const lost = "the files that the session began with cannot be had: "
	if i := slices.IndexFunc(e.Files, path.IsAbs); i >= 0 {
		return lost + e.Files[i] + " lies outside of the workspace, in a folder of --add-dir, which is not copied"
	}
	list, more := e.Files, ""
	if len(list) > shownMissing {
		list, more = list[:shownMissing], fmt.Sprintf(" and %d more", len(list)-shownMissing)
	}
	return lost + "what " + strings.Join(list, ", ") + more +
		" held was not kept, and neither git nor the workspace has it any more"
}

const shownMissing = 5

// errMissing reports a content that cannot be had.
var errMissing = errors.New("it was not saved")

// LayOut is the same world with the files that the session began with in a copy, and the
// later ones at hand. Nothing is written anywhere else.
func (w *World) LayOut(ctx context.Context, copy *os.Root, kept Contents) (*World, error) {
	w = &World{
		Start: w.Start, Whole: w.Whole, Tree: w.Tree, Unsure: w.Unsure, later: w.later,
		copy: copy, kept: kept,
	}
	all := slices.Collect(maps.Values(w.Start))
	for _, s := range slices.Concat(all, slices.Concat(slices.Collect(maps.Values(w.later))...)) {
		if err := check(s); err != nil { // before anything is laid out
			return nil, err
		}
	}
	var missing []string
	miss := func(name string, err error) error {
		if errors.Is(err, errMissing) && ctx.Err() == nil {
			missing, err = append(missing, name), nil
		}
		return cmp.Or(ctx.Err(), err)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Start)) {
		if err := miss(name, w.place(ctx, w.Start[name])); err != nil {
			return nil, err
		}
	}
	w.used = make(map[string][]byte)
	for _, seq := range slices.Sorted(maps.Keys(w.later)) {
		for _, s := range w.later[seq] {
			if !isFile(s) {
				continue
			}
			_, err := w.read(ctx, s)
			if err := miss(s.Path, err); err != nil {
				return nil, err
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, &MissingError{slices.Compact(missing)}
	}
	return w, nil
}

// root is the path of the copy.
func (w *World) root() string {
	if w.copy == nil {
		return ""
	}
	return w.copy.Name()
}

// check refuses to lay out what git would take for a repository. What is not there may be
// called anything; a worktree's link to its repository is made for the copy.
func check(s event.FileState) error {
	if s.Path == ".git" || s.Hash == "" && !s.Lost {
		return nil
	}
	if err := repofile.CheckLayout(s.Path, s.Link); err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	return nil
}

func isFile(s event.FileState) bool {
	return s.Lost || s.Hash != "" && s.Hash != "dir" && s.Link == ""
}

// byOthers stands for what others made of a file, where that was not kept.
const byOthers = "somebody else wrote this, and it was not kept\n"

// standIn is a file, or a folder, that others left.
func standIn(name string) event.FileState {
	if dir, ok := strings.CutSuffix(name, "/"); ok {
		return event.FileState{Path: dir, Hash: "dir"}
	}
	return event.FileState{Path: name, Hash: hash([]byte(byOthers)), Size: int64(len(byOthers))}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// content is a content that was kept.
func (w *World) content(ctx context.Context, s event.FileState) ([]byte, error) {
	if data := []byte(byOthers); s.Hash == hash(data) {
		return data, nil
	}
	data, err := w.kept.Content(ctx, s, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMissing, err)
	}
	return data, nil
}

// read reads a content that was kept, and holds on to it.
func (w *World) read(ctx context.Context, s event.FileState) ([]byte, error) {
	data, err := w.content(ctx, s)
	if err == nil {
		w.use(data)
	}
	return data, err
}

func (w *World) use(data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used != nil {
		w.used[hash(data)] = data
	}
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
	changes, err := expand(ctx, w.kept, changes)
	for _, c := range changes {
		if err == nil {
			err = w.place(ctx, c.After)
		}
	}
	return err
}

// withoutKeys is how names of files are told, and called in a copy: the same as
// in calls, which are on record without keys.
var withoutKeys = secret.Shapes

// place makes a file of the copy what s says.
func (w *World) place(ctx context.Context, s event.FileState) error {
	if !fs.ValidPath(s.Path) {
		return fmt.Errorf("%w: %s is outside the workspace", errMissing, s.Path)
	}
	if err := check(s); err != nil || repofile.CheckLayout(s.Path, "") != nil { // gone, or made for the copy
		return err
	}
	name := withoutKeys().Text(s.Path) // as calls name it that are on record without keys
	info, err := w.copy.Lstat(name)
	if s.Hash == "" && !s.Lost {
		if err != nil { // nor the folder that it would be in
			return nil
		}
		return w.copy.Remove(name)
	}
	if s.Hash == "dir" {
		if err := w.copy.MkdirAll(name, 0o755); err != nil || s.Mode == 0 {
			return err
		}
		return w.copy.Chmod(name, fs.FileMode(s.Mode))
	}
	mode := fs.FileMode(0o644)
	if err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	var data []byte
	if s.Link == "" {
		if data, err = w.read(ctx, s); err != nil {
			return err
		}
	}
	if err := errors.Join(w.copy.RemoveAll(name), w.copy.MkdirAll(path.Dir(name), 0o755)); err != nil {
		return err
	}
	if s.Link != "" {
		return w.copy.Symlink(s.Link, name)
	}
	return errors.Join(w.copy.WriteFile(name, data, 0o600), w.copy.Chmod(name, cmp.Or(fs.FileMode(s.Mode), mode)))
}
