package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"coder/internal/core/event"
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
	maxBundled     = 512 << 20
	maxOutputFile  = 8 << 20
)

// Bundle writes a session to one file, for another machine: its records, the contents of
// files that it changed, and saved output. It omits files with keys and returns their number.
func (a *Archive) Bundle(ctx context.Context, w io.Writer, id string) (left int, err error) {
	return a.bundle(ctx, w, id, 0)
}

// bundle is Bundle up to a record; zero means the last.
func (a *Archive) bundle(ctx context.Context, w io.Writer, id string, at uint64) (left int, err error) {
	now, err := a.openPast(0)
	if err != nil {
		return 0, err
	}
	defer now.Workspace.Close()
	p := packing{ctx: ctx, kept: now.Now, contents: make(map[string][]byte), known: make(map[string]string)}
	b := bundle.Bundle{Manifest: bundle.Manifest{Session: id, Root: a.Root, Home: a.Env.Getenv("HOME"), Made: a.Env.Now()}, Contents: p.contents, Output: a.output(id)}
	for r, err := range asof.Until(a.Store().Logs.Read(ctx, id, 0), at) {
		if err != nil {
			return 0, err
		}
		mask := a.conceals()
		r.Event = maskNames(event.WithStates(event.Masked(r.Event, mask), p.state), mask.Text)
		b.Records = append(b.Records, r)
	}
	if len(b.Records) == 0 {
		return 0, inputf("session %s has no logs, only a session file; export it with coder export --format json", id)
	}
	return p.left, bundle.Write(w, b)
}

// packing collects file contents for a bundle.
type packing struct {
	ctx      context.Context
	kept     past.Contents
	contents map[string][]byte
	known    map[string]string // hash in the bundle, by path and hash here
	size     int64
	left     int // files that hold keys
}

// maskNames masks keys in an event's file names. The local
// record keeps them, because an undo needs the real names.
func maskNames(e event.Event, mask func(string) string) event.Event {
	return event.WithStates(e, func(s event.FileState) event.FileState {
		s.Path, s.Link = mask(s.Path), mask(s.Link)
		return s
	})
}

// state adds a file's content, if it was saved and is no secret.
func (p *packing) state(s event.FileState) event.FileState {
	if s.Hash == "" || s.Lost || s.Link != "" {
		return s
	}
	if name, ok := p.known[s.Path+"\x00"+s.Hash]; ok {
		s.Hash = name
		return s
	}
	name := s.Hash
	data, err := p.kept.Content(p.ctx, s, maxBundledFile)
	switch {
	case err != nil || p.size+int64(len(data)) > maxBundled:
	case secret.Is(s.Path) || secret.Shapes().Text(string(data)) != string(data):
		p.left++
	default:
		sum := sha256.Sum256(data)
		name = hex.EncodeToString(sum[:])
		if p.contents[name] == nil {
			p.contents[name] = append([]byte{}, data...)
			p.size += int64(len(data))
		}
	}
	p.known[s.Path+"\x00"+s.Hash] = name
	s.Hash = name
	return s
}

// output returns the saved output of a session's calls.
func (a *Archive) output(id string) map[string][]byte {
	files := make(map[string][]byte)
	dir := filepath.Join(".coder", "runs", id)
	if a.Store().barred["runs"] != nil {
		return files
	}
	entries, _ := fs.ReadDir(repofile.Below(a.Root), filepath.ToSlash(dir)) // a missing folder means no output
	size := 0
	for _, e := range entries {
		if !e.Type().IsRegular() || !bundle.IsFile(e.Name()) {
			continue
		}
		data, err := repofile.Below(a.Root).Read(filepath.Join(dir, e.Name()), maxOutputFile)
		if size += len(data); err != nil || size > maxBundled/8 {
			continue
		}
		files[e.Name()] = []byte(secret.Shapes().Text(string(data)))
	}
	return files
}

// Imported describes an imported session's origin.
type Imported struct {
	Original string // its original id
	From     string // its original workspace
	Records  int
	// Unchecked counts the records without a checksum, which may have been changed since.
	Unchecked int
}

// Import imports a session from another machine, and returns its id here: its own,
// or as if given, or a new one if its own exists. Its records allow nothing here.
func (a *Workspace) Import(ctx context.Context, r io.Reader, as string) (id string, from Imported, err error) {
	b, err := bundle.Read(r)
	if err != nil {
		return "", from, inputf("%v", err)
	}
	from = Imported{Original: b.Session, From: b.Root, Records: len(b.Records), Unchecked: b.Unchecked}
	s := a.Store()
	if why := errors.Join(s.barred["log"], s.barred["runs"], s.barred["undo"], s.barred["sessions"]); why != nil {
		return "", from, why
	}
	if id = as; id == "" {
		id = b.Session
		if known, err := s.Known(ctx, id); err == nil && known != "" || !ValidSessionID(id) {
			id = NewSessionID(a.Env.Now())
		}
	}
	if _, err := s.Known(ctx, id); err == nil {
		return "", from, inputf("session %s already exists here", id)
	} else if !errors.Is(err, session.ErrNotFound) {
		return "", from, err
	}
	b = b.At(bundle.Place{Session: id, Root: a.Root, Home: a.Env.Getenv("HOME")})
	s.keepOutOfGit()
	a.register()
	store := s.contents()
	for _, data := range b.Contents {
		if _, err := store.Put("", bytes.NewReader(data)); err != nil {
			return "", from, fmt.Errorf("save the file contents: %w", err)
		}
	}
	if err := store.Commit(); err != nil {
		return "", from, fmt.Errorf("save the file contents: %w", err)
	}
	if err := a.takeOutput(id, b.Output); err != nil {
		return "", from, err
	}
	return id, from, a.saveImported(ctx, id, b.Records)
}

// fork copies a session, under the id as or a new one. The
// copy is like an imported session: its records allow nothing.
func (a *Workspace) fork(ctx context.Context, id, as string) (string, error) {
	if _, err := a.Store().Known(ctx, id); err != nil {
		return "", err
	}
	var copied bytes.Buffer
	if _, err := a.Bundle(ctx, &copied, id); err != nil {
		return "", err
	}
	made, _, err := a.Import(ctx, &copied, cmp.Or(as, NewSessionID(a.Env.Now())))
	return made, err
}

// takeOutput saves the output of a session's calls.
func (a *Archive) takeOutput(id string, files map[string][]byte) error {
	if len(files) == 0 {
		return nil
	}
	ws, err := workspace.Open(a.Root)
	if err != nil {
		return inputf("open the workspace: %v", err)
	}
	defer ws.Close()
	for name, data := range files {
		if err := ws.CreateFile(filepath.Join(".coder", "runs", id, name), data, 0o600); err != nil {
			return fmt.Errorf("save the output of calls: %w", err)
		}
	}
	return nil
}
