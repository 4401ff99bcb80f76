// Package gitstate saves the state of a git repository at one moment, and restores it in a folder that
// borrows the objects. The state includes HEAD, refs, their logs, the index and operations in progress
// (a merge, a rebase, a stash). It excludes the configuration and hooks, because git would run programs
// that they name.
package gitstate

import (
	"archive/tar"
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/host/repofile"
	"coder/internal/record/undo/gitindex"
)

// Repository locates git's data of a work tree.
type Repository struct {
	Top    string // top of the work tree
	Own    string // git folder of this work tree only
	Common string // git folder shared by all work trees; differs only for a linked one
}

// Find returns the repository whose work tree contains a folder.
func Find(dir string) (Repository, bool) {
	top, own := repofile.Repository(dir)
	if top == "" {
		return Repository{}, false
	}
	r := Repository{Top: top, Own: own, Common: own}
	if text, err := repofile.Own(filepath.Join(own, "commondir"), 4096); err == nil {
		if r.Common = strings.TrimSpace(string(text)); !filepath.IsAbs(r.Common) {
			r.Common = filepath.Join(own, r.Common)
		}
	}
	return r, true
}

// Linked reports whether the work tree is linked to a repository elsewhere.
func (r Repository) Linked() bool { return r.Own != r.Common }

// Large reports whether the repository has so many files that examining all takes long.
func (r Repository) Large() bool {
	info, err := os.Lstat(filepath.Join(r.Own, "index"))
	return r.Own != "" && err == nil && info.Size() > largeIndex
}

// largeIndex is the size of an index with some 50,000 files.
const largeIndex = 4 << 20

// Limits on what is saved of a repository.
const (
	maxFile    = 256 << 20 // bytes of an index or packed refs
	maxObjects = 5000      // loose objects
	maxObject  = 4 << 20   // bytes of one loose object, compressed
	maxLoose   = 16 << 20  // bytes of all loose objects
	fewObjects = 20        // objects read directly instead of by git
)

// Folders in a saved state, and the file with its notes.
const (
	ownDir    = "own"
	commonDir = "common"
	notesName = "notes"
)

// files and dirs are the names that belong to a state.
var (
	files = []string{
		"HEAD", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD",
		"REVERT_HEAD", "REBASE_HEAD", "BISECT_EXPECTED_REV", "BISECT_LOG", "BISECT_NAMES", "BISECT_START", "BISECT_TERMS",
		"BISECT_ANCESTORS_OK", "COMMIT_EDITMSG", "FETCH_HEAD", "index", "packed-refs", "shallow", "info/exclude",
	}
	dirs = []string{"refs", "logs", "rebase-merge", "rebase-apply", "sequencer"}
)

// belongs reports whether a file in git's folder belongs to its state.
func belongs(name string) bool {
	first, rest, below := strings.Cut(name, "/")
	switch {
	case strings.HasSuffix(name, ".lock") || !filepath.IsLocal(name) || path.Clean(name) != name:
		return false
	case slices.Contains(files, name), below && slices.Contains(dirs, first):
		return true
	case below && first == "worktrees":
		_, file, _ := strings.Cut(rest, "/")
		return slices.Contains([]string{"HEAD", "ORIG_HEAD", "gitdir", "commondir", "locked", "logs/HEAD"}, file)
	case below && first == "objects":
		_, err := hex.DecodeString(strings.Replace(rest, "/", "", 1))
		return err == nil && len(rest) > 40 && rest[2] == '/'
	}
	return strings.HasPrefix(name, "sharedindex.") && !below
}

// Save returns the state of a repository, empty for the zero one, with notes for [Notes]. It includes
// objects that only the index or the stash reach, because git may remove them later.
func (r Repository) Save(notes []byte) ([]byte, error) {
	return r.SaveBeyond(func() map[string]bool { return nil }, notes)
}

// SaveBeyond is Save without the objects in HEAD: a state is only restored beside its commit. It calls
// committed if there are many objects.
func (r Repository) SaveBeyond(committed func() map[string]bool, notes []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := put(w, notesName, notes); err != nil {
		return nil, err
	}
	for _, part := range r.parts() {
		if err := part.save(w); err != nil {
			return nil, fmt.Errorf("save the state of the repository: %w", err)
		}
	}
	if err := r.saveObjects(w, committed); err != nil {
		return nil, fmt.Errorf("save objects of the repository: %w", err)
	}
	return out.Bytes(), w.Close()
}

// part is a git folder that belongs to a state.
type part struct{ name, dir string }

func (r Repository) parts() []part {
	if r.Common == "" {
		return nil
	}
	parts := []part{{commonDir, r.Common}}
	if r.Linked() {
		parts = append(parts, part{ownDir, r.Own})
	}
	return parts
}

func (p part) save(w *tar.Writer) error {
	return filepath.WalkDir(p.dir, func(file string, d fs.DirEntry, err error) error {
		rel, outside := filepath.Rel(p.dir, file)
		if err != nil || outside != nil {
			return outside // another process may have removed it
		}
		if d.IsDir() {
			if rel == "." || rel == "info" || rel == "worktrees" || strings.HasPrefix(rel, "worktrees/") || belongs(rel+"/x") {
				return nil
			}
			return fs.SkipDir
		}
		if rel = filepath.ToSlash(rel); !belongs(rel) || !d.Type().IsRegular() {
			return nil
		}
		text, err := repofile.Own(file, maxFile)
		if err != nil {
			return nil
		}
		return put(w, path.Join(p.name, rel), text)
	})
}

func put(w *tar.Writer, name string, text []byte) error {
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// saveObjects adds the loose objects in the index and the stash.
func (r Repository) saveObjects(w *tar.Writer, committed func() map[string]bool) error {
	if r.Common == "" {
		return nil
	}
	l := loose{dir: filepath.Join(r.Common, "objects"), saved: make(map[string]bool), w: w}
	index, _ := repofile.Own(filepath.Join(r.Own, "index"), maxFile)
	staged, sure := r.staged(index)
	if !sure {
		staged = l.listed(index, committed)
	}
	for _, id := range staged {
		if _, err := l.save(id); err != nil {
			return err
		}
		if len(l.saved) == maxObjects {
			break
		}
	}
	log, err := repofile.Own(filepath.Join(r.Common, "logs", "refs", "stash"), maxObject)
	if err != nil {
		return nil // no stash
	}
	for line := range strings.Lines(string(log)) {
		if f := strings.Fields(line); len(f) > 1 {
			if err := l.reach(f[1], true); err != nil {
				return err
			}
		}
	}
	return nil
}

// loose provides the loose objects of a repository.
type loose struct {
	dir   string
	saved map[string]bool // those already tried
	size  int
	w     *tar.Writer
}

// listed returns the objects in an index, without those in HEAD if there are many.
func (l *loose) listed(index []byte, committed func() map[string]bool) (ids []string) {
	there := l.list()
	if len(there) == 0 {
		return nil
	}
	_ = gitindex.Read(index, gitindex.OIDSize(index), "", func(e gitindex.Entry) { // an index that only git understands yields nothing
		if id := e.OID(); there[id] {
			ids = append(ids, id)
		}
	})
	if len(ids) > fewObjects {
		has := committed()
		ids = slices.DeleteFunc(ids, func(id string) bool { return has[id] })
	}
	return ids
}

func (l *loose) list() map[string]bool {
	there := make(map[string]bool)
	folders, _ := os.ReadDir(l.dir)
	for _, d := range folders {
		if len(d.Name()) != 2 || !d.IsDir() {
			continue
		}
		names, _ := os.ReadDir(filepath.Join(l.dir, d.Name())) // another process may have removed it
		for _, f := range names {
			there[d.Name()+f.Name()] = true
		}
	}
	return there
}

// save saves an object and returns it in git's form; nil if it is not loose, already saved, or beyond
// the limit.
func (l *loose) save(id string) ([]byte, error) {
	if l.saved[id] || !isID(id, len(id)) || len(id) < 40 {
		return nil, nil
	}
	l.saved[id] = true
	text, err := repofile.Below(l.dir).Read(path.Join(id[:2], id[2:]), maxObject)
	if err != nil || l.size+len(text) > maxLoose {
		return nil, nil
	}
	l.size += len(text)
	return text, put(l.w, path.Join(commonDir, "objects", id[:2], id[2:]), text)
}

// reach saves a commit of the stash, or a tree, with everything below. It skips a commit's first parent,
// which is on a branch.
func (l *loose) reach(id string, commit bool) error {
	text, err := l.save(id)
	if err != nil || text == nil {
		return err
	}
	data, err := inflate(text)
	_, body, ok := bytes.Cut(data, []byte{0})
	if err != nil || !ok {
		return nil
	}
	if commit {
		return l.reachCommit(string(body))
	}
	for len(body) > 0 {
		entry, rest, ok := bytes.Cut(body, []byte{0})
		if n := len(id) / 2; ok && len(rest) >= n {
			err = l.reachEntry(string(entry), hex.EncodeToString(rest[:n]))
			body = rest[n:]
		} else {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *loose) reachEntry(entry, id string) error {
	if strings.HasPrefix(entry, "40000 ") {
		return l.reach(id, false)
	}
	_, err := l.save(id)
	return err
}

func (l *loose) reachCommit(text string) error {
	parents := 0
	for line := range strings.Lines(text) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "tree":
			if err := l.reach(id, false); err != nil {
				return err
			}
		case "parent":
			if parents++; parents > 1 {
				if err := l.reach(id, true); err != nil {
					return err
				}
			}
		default:
			return nil
		}
	}
	return nil
}

// errState reports a state with invalid content.
var errState = errors.New("the saved state of the repository is damaged")

// Notes returns the notes of a saved state.
func Notes(state []byte) ([]byte, error) {
	r := tar.NewReader(bytes.NewReader(state))
	if h, err := r.Next(); err != nil || h.Name != notesName {
		return nil, errState
	}
	return io.ReadAll(r)
}

// Index returns the work tree's index in a saved state, or nil.
func Index(state []byte) (index []byte) {
	for r := tar.NewReader(bytes.NewReader(state)); ; {
		h, err := r.Next()
		if err != nil {
			return index
		}
		if h.Name != path.Join(commonDir, "index") && h.Name != path.Join(ownDir, "index") {
			continue
		}
		if index, err = io.ReadAll(r); err != nil || strings.HasPrefix(h.Name, ownDir) {
			return index
		}
	}
}

// Object returns the content of an object in a saved state.
func Object(state []byte, id string) ([]byte, error) {
	if len(id) < 3 {
		return nil, fs.ErrNotExist
	}
	want := path.Join(commonDir, "objects", id[:2], id[2:])
	for r := tar.NewReader(bytes.NewReader(state)); ; {
		h, err := r.Next()
		if err != nil {
			return nil, fs.ErrNotExist
		}
		if h.Name != want {
			continue
		}
		z, err := zlib.NewReader(r)
		if err != nil {
			return nil, errState
		}
		data, err := io.ReadAll(io.LimitReader(z, maxFile))
		_, body, ok := bytes.Cut(data, []byte{0})
		if err != nil || !ok {
			return nil, errState
		}
		return body, nil
	}
}

// LayOut writes a saved state into the git folders of a copy, which must not contain a state yet. It
// only writes names that belong to a state, and no links.
func LayOut(state []byte, to Repository) error {
	r := tar.NewReader(bytes.NewReader(state))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errState
		}
		folder, name, _ := strings.Cut(h.Name, "/")
		dir := map[string]string{commonDir: to.Common, ownDir: to.Own}[folder]
		switch {
		case h.Name == notesName:
			continue
		case dir == "" || h.Typeflag != tar.TypeReg || !belongs(name):
			return fmt.Errorf("%w: %s", errState, h.Name)
		}
		text, err := io.ReadAll(io.LimitReader(r, maxFile))
		if err != nil {
			return errState
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
}

// Alone converts the saved state of one work tree into that of an independent repository: without linked
// work trees and objects, and with other notes.
func Alone(state, notes []byte) ([]byte, error) {
	var out bytes.Buffer
	w, own := tar.NewWriter(&out), make(map[string]bool)
	if err := put(w, notesName, notes); err != nil {
		return nil, err
	}
	for pass := range 2 { // the work tree's own files override shared ones
		for r := tar.NewReader(bytes.NewReader(state)); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, errState
			}
			folder, name, _ := strings.Cut(h.Name, "/")
			first, _, _ := strings.Cut(name, "/")
			text, err := io.ReadAll(io.LimitReader(r, maxFile))
			switch {
			case err != nil:
				return nil, errState
			case pass == 0 && folder == ownDir:
				own[name] = true
				err = put(w, path.Join(commonDir, name), text)
			case pass == 1 && folder == commonDir && !own[name] && first != "worktrees" && first != "objects":
				err = put(w, h.Name, text)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return out.Bytes(), w.Close()
}

// Borrow makes a repository read the objects of others, and write only its own.
func (r Repository) Borrow(objects ...string) error {
	info := filepath.Join(r.Common, "objects", "info")
	if err := errors.Join(os.MkdirAll(info, 0o755), os.MkdirAll(filepath.Join(r.Common, "refs"), 0o755)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "alternates"), []byte(strings.Join(objects, "\n")+"\n"), 0o644)
}

// Ignore makes git ignore names in the copy, by patterns.
func (r Repository) Ignore(patterns ...string) error {
	file := filepath.Join(r.Common, "info", "exclude")
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	text = append(bytes.TrimRight(text, "\n"), "\n"+strings.Join(patterns, "\n")+"\n"...)
	return os.WriteFile(file, text, 0o644)
}
