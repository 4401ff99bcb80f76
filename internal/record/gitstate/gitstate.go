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
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/repofile"
	"coder/internal/record/undo/gitindex"
)

// Repository locates git's data of a work tree.
type Repository struct {
	Top    string // top of the work tree
	GitDir string // git folder of this work tree only
	Common string // git folder shared by all work trees; differs only for a linked one
}

// Find returns the repository whose work tree contains a folder.
func Find(dir string) (Repository, bool) {
	top, own := repofile.FindRepository(dir)
	if top == "" {
		return Repository{}, false
	}
	r := Repository{Top: top, GitDir: own, Common: own}
	if text, err := repofile.ReadOwn(filepath.Join(own, "commondir"), 4096); err == nil {
		if r.Common = strings.TrimSpace(string(text)); !filepath.IsAbs(r.Common) {
			r.Common = filepath.Join(own, r.Common)
		}
	}
	return r, true
}

// IsLinked reports whether the work tree is linked to a repository elsewhere.
func (r Repository) IsLinked() bool { return r.GitDir != r.Common }

// IsLarge reports whether the repository has so many files that examining all takes long.
func (r Repository) IsLarge() bool {
	info, err := os.Lstat(filepath.Join(r.GitDir, "index"))
	return r.GitDir != "" && err == nil && info.Size() > largeIndex
}

// largeIndex is the size of an index with some 50,000 files.
const largeIndex = 4 << 20

// Limits on what is saved of a repository.
const (
	maxFile          = 256 << 20 // bytes of an index or packed refs
	maxObjects       = 5000      // loose objects
	maxObject        = 4 << 20   // bytes of one loose object, compressed
	maxLoose         = 16 << 20  // bytes of all loose objects
	maxDirectObjects = 20        // objects read directly instead of by git
)

// Folders in a saved state, and the file with its notes.
const (
	ownDir    = "own"
	commonDir = "common"
	notesName = "notes"
)

// stateFiles and dirs are the names that belong to a state.
var (
	stateFiles = []string{
		"HEAD", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG",
		"CHERRY_PICK_HEAD",
		"REVERT_HEAD", "REBASE_HEAD", "BISECT_EXPECTED_REV", "BISECT_LOG", "BISECT_NAMES", "BISECT_START", "BISECT_TERMS",
		"BISECT_ANCESTORS_OK", "COMMIT_EDITMSG", "FETCH_HEAD", "index", "packed-refs", "shallow", "info/exclude",
	}
	stateDirs = []string{"refs", "logs", "rebase-merge", "rebase-apply", "sequencer"}
)

// isStateFile reports whether a file in git's folder belongs to its state.
func isStateFile(name string) bool {
	first, rest, below := strings.Cut(name, "/")
	switch {
	case strings.HasSuffix(name, ".lock") || !filepath.IsLocal(name) || path.Clean(name) != name:
		return false
	case slices.Contains(stateFiles, name), below && slices.Contains(stateDirs, first):
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
	return r.SaveUncommitted(func() map[string]bool { return nil }, notes)
}

// SaveUncommitted is Save without the objects in HEAD: a state is only restored beside its commit. It calls
// committed if there are many objects.
func (r Repository) SaveUncommitted(committed func() map[string]bool, notes []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := writeEntry(w, notesName, notes); err != nil {
		return nil, err
	}
	for _, part := range r.gitFolders() {
		if err := part.save(w); err != nil {
			return nil, message.Errorf("save the state of the repository: %w", err)
		}
	}
	if err := r.saveObjects(w, committed); err != nil {
		return nil, message.Errorf("save objects of the repository: %w", err)
	}
	return out.Bytes(), w.Close()
}

// gitFolder is a git folder that belongs to a state.
type gitFolder struct{ name, dir string }

func (r Repository) gitFolders() []gitFolder {
	if r.Common == "" {
		return nil
	}
	parts := []gitFolder{{commonDir, r.Common}}
	if r.IsLinked() {
		parts = append(parts, gitFolder{ownDir, r.GitDir})
	}
	return parts
}

func (p gitFolder) save(w *tar.Writer) error {
	return filepath.WalkDir(p.dir, func(file string, d fs.DirEntry, err error) error {
		rel, outside := filepath.Rel(p.dir, file)
		if err != nil || outside != nil {
			return outside // another process may have removed it
		}
		if d.IsDir() {
			if rel == "." || rel == "info" || rel == "worktrees" || strings.HasPrefix(rel, "worktrees/") ||
				isStateFile(rel+"/x") {
				return nil
			}
			return fs.SkipDir
		}
		if rel = filepath.ToSlash(rel); !isStateFile(rel) || !d.Type().IsRegular() {
			return nil
		}
		text, err := repofile.ReadOwn(file, maxFile)
		if err != nil {
			return nil
		}
		return writeEntry(w, path.Join(p.name, rel), text)
	})
}

func writeEntry(w *tar.Writer, name string, text []byte) error {
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
	l := looseObjects{dir: filepath.Join(r.Common, "objects"), tried: make(map[string]bool), w: w}
	index, _ := repofile.ReadOwn(filepath.Join(r.GitDir, "index"), maxFile)
	staged, sure := r.stagedObjects(index)
	if !sure {
		staged = l.indexObjects(index, committed)
	}
	for _, id := range staged {
		if _, err := l.save(id); err != nil {
			return err
		}
		if len(l.tried) == maxObjects {
			break
		}
	}
	log, err := repofile.ReadOwn(filepath.Join(r.Common, "logs", "refs", "stash"), maxObject)
	if err != nil {
		return nil // no stash
	}
	for line := range strings.Lines(string(log)) {
		if f := strings.Fields(line); len(f) > 1 {
			if err := l.saveTree(f[1], true); err != nil {
				return err
			}
		}
	}
	return nil
}

// looseObjects provides the loose objects of a repository.
type looseObjects struct {
	dir   string
	tried map[string]bool // those already tried
	size  int
	w     *tar.Writer
}

// indexObjects returns the objects in an index, without those in HEAD if there are many.
func (l *looseObjects) indexObjects(index []byte, committed func() map[string]bool) (ids []string) {
	there := l.listObjects()
	if len(there) == 0 {
		return nil
	}
	// an index that only git understands yields nothing
	_ = gitindex.Read(index, gitindex.OIDSize(index), "", func(e gitindex.Entry) {
		if id := e.OID(); there[id] {
			ids = append(ids, id)
		}
	})
	if len(ids) > maxDirectObjects {
		has := committed()
		ids = slices.DeleteFunc(ids, func(id string) bool { return has[id] })
	}
	return ids
}

func (l *looseObjects) listObjects() map[string]bool {
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
func (l *looseObjects) save(id string) ([]byte, error) {
	if l.tried[id] || !isID(id, len(id)) || len(id) < 40 {
		return nil, nil
	}
	l.tried[id] = true
	text, err := repofile.NewRoot(l.dir).Read(path.Join(id[:2], id[2:]), maxObject)
	if err != nil || l.size+len(text) > maxLoose {
		return nil, nil
	}
	l.size += len(text)
	return text, writeEntry(l.w, path.Join(commonDir, "objects", id[:2], id[2:]), text)
}

// saveTree saves a commit of the stash, or a tree, with everything below. It skips a commit's first parent,
// which is on a branch.
func (l *looseObjects) saveTree(id string, commit bool) error {
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
		return l.saveCommit(string(body))
	}
	for len(body) > 0 {
		entry, rest, ok := bytes.Cut(body, []byte{0})
		if n := len(id) / 2; ok && len(rest) >= n {
			err = l.saveEntry(string(entry), hex.EncodeToString(rest[:n]))
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

func (l *looseObjects) saveEntry(entry, id string) error {
	if strings.HasPrefix(entry, "40000 ") {
		return l.saveTree(id, false)
	}
	_, err := l.save(id)
	return err
}

func (l *looseObjects) saveCommit(text string) error {
	parents := 0
	for line := range strings.Lines(text) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "tree":
			if err := l.saveTree(id, false); err != nil {
				return err
			}
		case "parent":
			if parents++; parents > 1 {
				if err := l.saveTree(id, true); err != nil {
					return err
				}
			}
		default:
			return nil
		}
	}
	return nil
}

// errInvalidState reports a state with invalid content.
var errInvalidState = errors.New("the saved state of the repository is damaged")

// Notes returns the notes of a saved state.
func Notes(state []byte) ([]byte, error) {
	r := tar.NewReader(bytes.NewReader(state))
	if h, err := r.Next(); err != nil || h.Name != notesName {
		return nil, errInvalidState
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
			return nil, errInvalidState
		}
		data, err := io.ReadAll(io.LimitReader(z, maxFile))
		_, body, ok := bytes.Cut(data, []byte{0})
		if err != nil || !ok {
			return nil, errInvalidState
		}
		return body, nil
	}
}

// Restore writes a saved state into the git folders of a copy, which must not contain a state yet. It
// only writes names that belong to a state, and no links.
func Restore(state []byte, to Repository) error {
	r := tar.NewReader(bytes.NewReader(state))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errInvalidState
		}
		folder, name, _ := strings.Cut(h.Name, "/")
		dir := map[string]string{commonDir: to.Common, ownDir: to.GitDir}[folder]
		switch {
		case h.Name == notesName:
			continue
		case dir == "" || h.Typeflag != tar.TypeReg || !isStateFile(name):
			return message.Errorf("%w: %s", errInvalidState, h.Name)
		}
		text, err := io.ReadAll(io.LimitReader(r, maxFile))
		if err != nil {
			return errInvalidState
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

// MakeStandalone converts the saved state of one work tree into that of an independent repository: without linked
// work trees and objects, and with other notes.
func MakeStandalone(state, notes []byte) ([]byte, error) {
	var out bytes.Buffer
	w, own := tar.NewWriter(&out), make(map[string]bool)
	if err := writeEntry(w, notesName, notes); err != nil {
		return nil, err
	}
	for pass := range 2 { // the work tree's own files override shared ones
		for r := tar.NewReader(bytes.NewReader(state)); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, errInvalidState
			}
			folder, name, _ := strings.Cut(h.Name, "/")
			first, _, _ := strings.Cut(name, "/")
			text, err := io.ReadAll(io.LimitReader(r, maxFile))
			switch {
			case err != nil:
				return nil, errInvalidState
			case pass == 0 && folder == ownDir:
				own[name] = true
				err = writeEntry(w, path.Join(commonDir, name), text)
			case pass == 1 && folder == commonDir && !own[name] && first != "worktrees" && first != "objects":
				err = writeEntry(w, h.Name, text)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return out.Bytes(), w.Close()
}

// ShareObjects makes a repository read the objects of others, and write only its own.
func (r Repository) ShareObjects(objects ...string) error {
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
