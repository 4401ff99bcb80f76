package rerun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// Golden is a session that is kept to be run again: a folder with what the model
// said, the files it began with, and what is expected to come of it.
type Golden struct {
	Form     int       `json:"form"` // of the folder
	Session  string    `json:"session"`
	Root     string    `json:"root"` // stands for the workspace
	Platform string    `json:"platform"`
	Version  string    `json:"version"`
	Made     time.Time `json:"made"`
	Branch   string    `json:"branch,omitempty"` // of form 1: it has no history
	// Within is where the workspace lies in its repository, if it was in one: the folder has
	// the repository's state and its objects.
	Within      string `json:"within,omitempty"`
	State, Pack []byte `json:"-"`
	// Name and Address are those of the author of commits.
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
	// Trusted says that the rules and the hooks of the project's own settings were in
	// force.
	Trusted bool     `json:"trusted,omitempty"`
	Except  []uint64 `json:"except,omitempty"` // records that are not compared
	Ignore  []string `json:"ignore,omitempty"` // patterns of lines that are not
	// Start are the files, and Later what others did to them, by the record after
	// which.
	Start []event.FileState            `json:"start"`
	Later map[uint64][]event.FileState `json:"later,omitempty"`

	Records  []event.Record    `json:"-"`
	Contents map[string][]byte `json:"-"` // by hash
}

// goldenForm is the form of folders that is written and read.
const goldenForm = 2

// The parts of a folder.
const (
	manifest  = "golden.json"
	model     = "model.jsonl"    // what the model said
	expected  = "expected.jsonl" // everything else
	files     = "files"
	stateFile = "repository.tar"
	packFile  = "objects.pack"
	contents  = "contents" // what others left later, and calls that are not made again
)

// Golden is what the rerun came to, with nothing in it of where it was run.
func (f *Follower) Golden(ctx context.Context, g Golden) (*Golden, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g.Form, g.Contents, g.Later = goldenForm, make(map[string][]byte), make(map[uint64][]event.FileState)
	g.Records, g.Start, g.Except = nil, nil, slices.Clone(g.Except)
	became := make(map[uint64]uint64, len(f.pairs)) // the records of the rerun, by those of the take
	for _, p := range f.pairs {
		r, err := f.portable(ctx, p.is, g.Root)
		if err != nil {
			return nil, err
		}
		g.Records, became[p.was.Seq] = append(g.Records, r), p.is.Seq
	}
	for _, name := range slices.Sorted(maps.Keys(f.world.Start)) {
		s, err := g.hold(ctx, f.world, f.world.Start[name])
		if err != nil {
			return nil, err
		}
		g.Start = append(g.Start, s)
	}
	for seq, list := range f.world.later {
		for _, s := range list {
			s, err := g.hold(ctx, f.world, s)
			if err != nil {
				return nil, err
			}
			g.Later[became[seq]] = append(g.Later[became[seq]], s)
		}
	}
	for i, seq := range g.Except {
		g.Except[i] = cmp.Or(became[seq], seq)
	}
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	maps.Copy(g.Contents, f.world.used)
	return &g, nil
}

// hold takes in the content of a file, and names it by what it is.
func (g *Golden) hold(ctx context.Context, w *World, s event.FileState) (event.FileState, error) {
	if !isFile(s) {
		return s, nil
	}
	data, err := w.read(ctx, s)
	if err != nil {
		return s, err
	}
	s.Hash, s.Size = hash(data), int64(len(data))
	g.Contents[s.Hash] = data
	return s, nil
}

// portable is a record that does not tell where it was made, and names contents by what
// they are. The golden session has those that calls left, to be compared.
func (f *Follower) portable(ctx context.Context, r event.Record, root string) (event.Record, error) {
	r.Seal = ""
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		e.Tree, e.Repository, e.Confined, e.Before = "", "", "", slices.Clone(e.Before)
		r.Event = e
	case event.ToolCallCompleted:
		var changes []event.FileChange
		for _, c := range e.Changes {
			list, err := f.is.Kept.Expand(ctx, c)
			if err != nil {
				list = []event.FileChange{c}
			}
			for _, one := range list {
				changes = append(changes, event.FileChange{Before: f.outcome(ctx, one.Before), After: f.outcome(ctx, one.After)})
			}
		}
		e.Changes, e.DurationMs, e.Saw = changes, 0, slices.Clone(e.Saw)
		r.Event = e
	}
	line, err := event.Encode(r)
	if err != nil {
		return r, err
	}
	text := swap(string(line), f.world.root, root)
	for from, to := range f.is.Paths {
		if from != f.world.root {
			text = swap(text, from, to)
		}
	}
	again, _, err := event.Decode([]byte(text), event.LogOf(r.Event))
	return again, err
}

// outcome takes in what a call left in a file, if that can be compared.
func (f *Follower) outcome(ctx context.Context, s event.FileState) event.FileState {
	if !isFile(s) || s.Lost {
		return s
	}
	data, err := f.is.Kept.Content(ctx, s, maxCompared)
	if err != nil || secret.Is(s.Path) {
		return s
	}
	text := []byte(withoutKeys().Text(swap(string(data), f.world.root, f.take.Root)))
	s.Hash, s.Size = hash(text), int64(len(text))
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	f.world.used[s.Hash] = text
	return s
}

// At is g with another path that stands for the workspace.
func (g *Golden) At(root string) (*Golden, error) {
	moved := *g
	moved.Root, moved.Records = root, nil
	for _, r := range g.Records {
		line, err := event.Encode(r)
		if err != nil {
			return nil, err
		}
		if r, err = decode([]byte(swap(string(line), g.Root, root))); err != nil {
			return nil, err
		}
		moved.Records = append(moved.Records, r)
	}
	return &moved, nil
}

// Write writes the folder, which must not be there yet.
func (g *Golden) Write(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, s := range g.Start {
		if !isFile(s) {
			continue
		}
		name := filepath.Join(dir, files, filepath.FromSlash(s.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, g.Contents[s.Hash], 0o644); err != nil {
			return err
		}
	}
	if g.State != nil {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, stateFile), g.State, 0o644), os.WriteFile(filepath.Join(dir, packFile), g.Pack, 0o644)); err != nil {
			return err
		}
	}
	return g.WriteExpected(dir)
}

// needed reports whether a content is put somewhere after the start, or left by a call under
// another name than it began with.
func (g *Golden) needed(hash string) bool {
	is := func(s event.FileState) bool { return s.Hash == hash }
	for _, list := range g.Later {
		if slices.ContainsFunc(list, is) {
			return true
		}
	}
	for _, r := range g.Records {
		done, _ := r.Event.(event.ToolCallCompleted)
		if slices.ContainsFunc(done.Changes, func(c event.FileChange) bool {
			return is(c.After) && !slices.ContainsFunc(g.Start, func(s event.FileState) bool { return is(s) && s.Path == c.After.Path })
		}) {
			return true
		}
	}
	return false
}

// WriteExpected writes what is expected, and what the model says.
func (g *Golden) WriteExpected(dir string) error {
	began := make(map[string]bool)
	for _, s := range g.Start {
		began[s.Hash] = isFile(s)
	}
	for name, data := range g.Contents {
		if began[name] && !g.needed(name) {
			continue // it is there by its path
		}
		if err := os.MkdirAll(filepath.Join(dir, contents), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, contents, name), data, 0o644); err != nil {
			return err
		}
	}
	var said, rest bytes.Buffer
	for _, r := range g.Records {
		line, err := event.Encode(r)
		if err != nil {
			return err
		}
		to := &rest
		if isReply(r.Event) {
			to = &said
		}
		to.Write(append(line, '\n'))
	}
	about, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		atomicfile.Write(filepath.Join(dir, model), said.Bytes(), 0o644),
		atomicfile.Write(filepath.Join(dir, expected), rest.Bytes(), 0o644),
		atomicfile.Write(filepath.Join(dir, manifest), append(about, '\n'), 0o644),
	)
}

// maxGolden bounds each file of a folder that is read.
const maxGolden = 256 << 20

// ReadGolden reads a folder.
func ReadGolden(dir string) (*Golden, error) {
	in := repofile.Below(dir)
	text, err := in.Read(manifest, maxGolden)
	if err != nil {
		return nil, err
	}
	var g Golden
	if err := json.Unmarshal(text, &g); err != nil {
		return nil, fmt.Errorf("%s: %w", manifest, err)
	}
	if g.Form == 1 && g.Branch != "" {
		return nil, fmt.Errorf("%s: an earlier version saved it, without the history of its repository: save it again", manifest)
	}
	if g.Form < 1 || g.Form > goldenForm || g.Root == "" || g.Session == "" {
		return nil, fmt.Errorf("%s: this is not a golden session of form %d", manifest, goldenForm)
	}
	if g.Within != "" {
		if !filepath.IsLocal(g.Within) || path.Clean(g.Within) != g.Within {
			return nil, fmt.Errorf("%s: the workspace lies nowhere in a repository", manifest)
		}
		if g.State, err = in.Read(stateFile, maxGolden); err != nil {
			return nil, err
		}
		if g.Pack, err = in.Read(packFile, maxGolden); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{model, expected} {
		text, err := in.Read(name, maxGolden)
		if err != nil {
			return nil, err
		}
		n := 0
		for line := range bytes.Lines(text) {
			n++
			r, err := decode(line)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
			g.Records = append(g.Records, r)
		}
	}
	slices.SortFunc(g.Records, func(a, b event.Record) int { return int(a.Seq) - int(b.Seq) })
	return &g, nil
}

// decode reads a record of any log.
func decode(line []byte) (r event.Record, err error) {
	r, _, err = event.Decode(bytes.TrimRight(line, "\n"), event.Conversation)
	if u, ok := r.Event.(event.Unknown); ok && err == nil {
		err = fmt.Errorf("a record of a kind that is not known: %s", u.Type)
	}
	return r, err
}

// Kept is what the folder has of files.
type Kept struct{ Dir string }

// Content is what a file held.
func (k Kept) Content(_ context.Context, s event.FileState, limit int64) ([]byte, error) {
	in := repofile.Below(k.Dir)
	for _, name := range []string{path.Join(contents, s.Hash), path.Join(files, s.Path)} {
		if !fs.ValidPath(name) || strings.ContainsRune(s.Hash, '/') {
			continue
		}
		if data, err := in.Read(name, limit); err == nil && hash(data) == s.Hash {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%s is not in %s as it was: %w", s.Path, filepath.Base(k.Dir), fs.ErrNotExist)
}

// Expand has nothing to expand: changes are kept one by one.
func (k Kept) Expand(_ context.Context, c event.FileChange) ([]event.FileChange, error) {
	return []event.FileChange{c}, nil
}
