package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/record/past"
	"coder/internal/record/session"
	"coder/internal/report/asof"
	"coder/internal/report/bundle"
)

// Limits on a bundle's content besides the records.
const (
	maxBundledFile = 16 << 20
	maxBundleBytes = 512 << 20
	maxOutputFile  = 8 << 20
)

// WriteBundle writes a session to one file, for another machine: its records, the contents of
// files that it changed, and saved output. It omits files with keys and returns their number.
func (a *Archive) WriteBundle(ctx context.Context, w io.Writer, id string) (left int, err error) {
	return a.bundleUpTo(ctx, w, id, 0)
}

// bundleUpTo is Bundle up to a record; zero means the last.
func (a *Archive) bundleUpTo(ctx context.Context, w io.Writer, id string, at uint64) (left int, err error) {
	now, err := a.openPastStore(0)
	if err != nil {
		return 0, err
	}
	defer now.Workspace.Close()
	p := bundlePacker{ctx: ctx, kept: now.CurrentStore, fileContents: make(map[string][]byte),
		bundledHashes: make(map[string]string)}
	b := bundle.Bundle{Manifest: bundle.Manifest{Session: id, Root: a.Root, Home: a.Env.Getenv("HOME"),
		Created: a.Env.Now()}, Contents: p.fileContents, Output: a.savedOutput(id)}
	for r, err := range asof.Until(a.Store().Logs.Read(ctx, id, 0), at) {
		if err != nil {
			return 0, err
		}
		mask := a.newConcealer()
		r.Event = maskFileNames(event.MapFileStates(event.Mask(r.Event, mask), p.packState), mask.Text)
		b.Records = append(b.Records, r)
	}
	if len(b.Records) == 0 {
		return 0, inputErrorf("session %s has no logs, only a session file; export it with coder export --format json", id)
	}
	return p.skippedFiles, bundle.Write(w, b)
}

// bundlePacker collects file contents for a bundle.
type bundlePacker struct {
	ctx           context.Context
	kept          past.ContentSource
	fileContents  map[string][]byte
	bundledHashes map[string]string // hash in the bundle, by path and hash here
	size          int64
	skippedFiles  int // files that hold keys
}

// maskFileNames masks keys in an event's file names. The local
// record keeps them, because an undo needs the real names.
func maskFileNames(e event.Event, mask func(string) string) event.Event {
	return event.MapFileStates(e, func(s event.FileState) event.FileState {
		s.Path, s.Link = mask(s.Path), mask(s.Link)
		return s
	})
}

// packState adds a file's content, if it was saved and is no secret.
func (p *bundlePacker) packState(s event.FileState) event.FileState {
	if s.Hash == "" || s.ContentLost || s.Link != "" {
		return s
	}
	if name, ok := p.bundledHashes[s.Path+"\x00"+s.Hash]; ok {
		s.Hash = name
		return s
	}
	name := s.Hash
	data, err := p.kept.Content(p.ctx, s, maxBundledFile)
	switch {
	case err != nil || p.size+int64(len(data)) > maxBundleBytes:
	case secret.IsSecretFile(s.Path) || secret.ShapeConcealer().Text(string(data)) != string(data):
		p.skippedFiles++
	default:
		sum := sha256.Sum256(data)
		name = hex.EncodeToString(sum[:])
		if p.fileContents[name] == nil {
			p.fileContents[name] = append([]byte{}, data...)
			p.size += int64(len(data))
		}
	}
	p.bundledHashes[s.Path+"\x00"+s.Hash] = name
	s.Hash = name
	return s
}

// savedOutput returns the saved output of a session's calls.
func (a *Archive) savedOutput(id string) map[string][]byte {
	files := make(map[string][]byte)
	dir := filepath.Join(".coder", "runs", id)
	if a.Store().unusableDirs["runs"] != nil {
		return files
	}
	entries, _ := fs.ReadDir(repofile.NewRoot(a.Root), filepath.ToSlash(dir)) // a missing folder means no output
	size := 0
	for _, e := range entries {
		if !e.Type().IsRegular() || !bundle.IsOutputName(e.Name()) {
			continue
		}
		data, err := repofile.NewRoot(a.Root).Read(filepath.Join(dir, e.Name()), maxOutputFile)
		if size += len(data); err != nil || size > maxBundleBytes/8 {
			continue
		}
		files[e.Name()] = []byte(secret.ShapeConcealer().Text(string(data)))
	}
	return files
}

// ImportInfo describes an imported session's origin.
type ImportInfo struct {
	Original string // its original id
	From     string // its original workspace
	Records  int
	// UncheckedRecords counts the records without a checksum, which may have been changed since.
	UncheckedRecords int
}

// ImportBundle imports a session from another machine, and returns its id here: its own,
// or as if given, or a new one if its own exists. Its records allow nothing here.
func (a *Workspace) ImportBundle(ctx context.Context, r io.Reader, as string) (id string, from ImportInfo, err error) {
	b, err := bundle.Read(r)
	if err != nil {
		return "", from, inputErrorf("%v", err)
	}
	from = ImportInfo{Original: b.Session, From: b.Root, Records: len(b.Records), UncheckedRecords: b.Unchecked}
	s := a.Store()
	if why := errors.Join(s.unusableDirs["log"], s.unusableDirs["runs"], s.unusableDirs["undo"],
		s.unusableDirs["sessions"]); why != nil {
		return "", from, why
	}
	if id = as; id == "" {
		id = b.Session
		if known, err := s.CheckSession(ctx, id); err == nil && known != "" || !IsSessionID(id) {
			id = NewSessionID(a.Env.Now())
		}
	}
	if _, err := s.CheckSession(ctx, id); err == nil {
		return "", from, inputErrorf("session %s already exists here", id)
	} else if !errors.Is(err, session.ErrNotFound) {
		return "", from, err
	}
	b = b.Relocate(bundle.Location{Session: id, Root: a.Root, Home: a.Env.Getenv("HOME")})
	s.writeGitignore()
	a.registerWorkspace()
	store := s.undoStore()
	for _, data := range b.Contents {
		if _, err := store.Put("", bytes.NewReader(data)); err != nil {
			return "", from, message.Errorf("save the file contents: %w", err)
		}
	}
	if err := store.Commit(); err != nil {
		return "", from, message.Errorf("save the file contents: %w", err)
	}
	if err := a.saveOutput(id, b.Output); err != nil {
		return "", from, err
	}
	return id, from, a.saveImported(ctx, id, b.Records)
}

// copySession copies a session, under the id as or a new one. The
// copy is like an imported session: its records allow nothing.
func (a *Workspace) copySession(ctx context.Context, id, as string) (string, error) {
	if _, err := a.Store().CheckSession(ctx, id); err != nil {
		return "", err
	}
	var copied bytes.Buffer
	if _, err := a.WriteBundle(ctx, &copied, id); err != nil {
		return "", err
	}
	made, _, err := a.ImportBundle(ctx, &copied, cmp.Or(as, NewSessionID(a.Env.Now())))
	return made, err
}

// saveOutput saves the output of a session's calls.
func (a *Archive) saveOutput(id string, files map[string][]byte) error {
	if len(files) == 0 {
		return nil
	}
	ws, err := workspace.Open(a.Root)
	if err != nil {
		return inputErrorf("open the workspace: %v", err)
	}
	defer ws.Close()
	for name, data := range files {
		if err := ws.CreateFile(filepath.Join(".coder", "runs", id, name), data, 0o600); err != nil {
			return message.Errorf("save the output of calls: %w", err)
		}
	}
	return nil
}
