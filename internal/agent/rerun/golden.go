package rerun

import (
	"bytes"
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
	Branch   string    `json:"branch,omitempty"`  // that is checked out, if the files are to be in a repository
	Tracked  []string  `json:"tracked,omitempty"` // the files that it has in a commit
	// Trusted says that the rules and the hooks of the project's own settings were in
	// force.
	Trusted bool `json:"trusted,omitempty"`
	// Start are the files, and Later what others did to them, by the record after
	// which.
	Start []event.FileState            `json:"start"`
	Later map[uint64][]event.FileState `json:"later,omitempty"`

	Records  []event.Record    `json:"-"`
	Contents map[string][]byte `json:"-"` // by hash
}

// goldenForm is the form of folders that is written and read.
const goldenForm = 1

// The parts of a folder.
const (
	manifest = "golden.json"
	model    = "model.jsonl"    // what the model said
	expected = "expected.jsonl" // everything else
	files    = "files"
	contents = "contents" // what others left later, and calls that are not made again
)

// Golden is what was learnt, with nothing in it of where it was run.
func (f *Follower) Golden(ctx context.Context, g Golden) (*Golden, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g.Form, g.Contents, g.Later = goldenForm, make(map[string][]byte), make(map[uint64][]event.FileState)
	for _, r := range f.learnt {
		r, err := f.portable(ctx, r, g.Root)
		if err != nil {
			return nil, err
		}
		g.Records = append(g.Records, r)
	}
	for _, name := range slices.Sorted(maps.Keys(f.world.Start)) {
		s := f.world.Start[name]
		if isFile(s) {
			data, err := f.world.kept.Content(ctx, s, maxFile)
			if err != nil {
				return nil, err
			}
			s.Hash, s.Size = hash(data), int64(len(data))
			g.Contents[s.Hash] = data
		}
		g.Start = append(g.Start, s)
	}
	for seq, list := range f.world.later {
		for _, s := range list {
			if isFile(s) {
				data, err := f.world.kept.Content(ctx, s, maxFile)
				if err != nil {
					return nil, err
				}
				s.Hash, s.Size = hash(data), int64(len(data))
			}
			g.Later[f.became[seq]] = append(g.Later[f.became[seq]], s)
		}
	}
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	maps.Copy(g.Contents, f.world.used)
	return &g, nil
}

// portable is a record that does not tell where it was made, and names contents
// by what they are.
func (f *Follower) portable(ctx context.Context, r event.Record, root string) (event.Record, error) {
	r.Seal = ""
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		e.Tree, e.Confined, e.Before = "", "", slices.Clone(e.Before)
		for i, s := range e.Before {
			e.Before[i].Hash = f.portableName(s)
		}
		r.Event = e
	case event.ToolCallCompleted:
		var changes []event.FileChange
		for _, c := range e.Changes {
			list, err := f.is.Kept.Expand(ctx, c)
			if err != nil {
				list = []event.FileChange{c}
			}
			for _, one := range list {
				one.Before.Hash, one.After.Hash = f.portableName(one.Before), f.portableName(one.After)
				changes = append(changes, one)
			}
		}
		e.Changes, e.DurationMs, e.Saw = changes, 0, slices.Clone(e.Saw)
		for i, s := range e.Saw {
			e.Saw[i].Hash = f.portableName(s)
		}
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

// portableName names a content: by its hash where it is put somewhere, else
// without what may differ.
func (f *Follower) portableName(s event.FileState) string {
	if _, put := f.world.used[s.Hash]; put || !isFile(s) || s.Lost {
		return s.Hash
	}
	if name := f.content(f.is, s); name != s.Hash {
		return normalised + name
	}
	return s.Hash
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
	began := make(map[string]bool)
	for _, s := range g.Start {
		if !isFile(s) {
			continue
		}
		began[s.Hash] = true
		name := filepath.Join(dir, files, filepath.FromSlash(s.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, g.Contents[s.Hash], 0o644); err != nil {
			return err
		}
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
	return g.WriteExpected(dir)
}

// needed reports whether a content is put somewhere after the start.
func (g *Golden) needed(hash string) bool {
	for _, list := range g.Later {
		if slices.ContainsFunc(list, func(s event.FileState) bool { return s.Hash == hash }) {
			return true
		}
	}
	return false
}

// WriteExpected writes what is expected, and what the model says.
func (g *Golden) WriteExpected(dir string) error {
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
	if g.Form != goldenForm || g.Root == "" || g.Session == "" {
		return nil, fmt.Errorf("%s: this is not a golden session of form %d", manifest, goldenForm)
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
