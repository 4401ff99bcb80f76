// Package golden keeps sessions that are run again as tests, each in a folder that people can
// read and put under version control.
package golden

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/record/past"
)

// Golden is a session that is kept to be run again: a folder with what the model
// said, the files it began with, and what is expected to come of it.
type Golden struct {
	Format   int       `json:"form"` // of the folder
	Session  string    `json:"session"`
	Root     string    `json:"root"` // stands for the workspace
	Platform string    `json:"platform"`
	Version  string    `json:"version"`
	Created  time.Time `json:"made"`
	Branch   string    `json:"branch,omitempty"` // of form 1: it has no history
	// RepoDir is where the workspace lies in its repository, if it was in one: the folder has
	// the repository's state and its objects.
	RepoDir     string `json:"within,omitempty"`
	State, Pack []byte `json:"-"`
	// AuthorName and Address are those of the author of commits.
	AuthorName  string `json:"name,omitempty"`
	AuthorEmail string `json:"address,omitempty"`
	// Trusted says that the rules and the hooks of the project's own settings were in
	// force.
	Trusted        bool     `json:"trusted,omitempty"`
	SkippedRecords []uint64 `json:"except,omitempty"` // records that are not compared
	IgnoredLines   []string `json:"ignore,omitempty"` // patterns of lines that are not
	// Start are the files, and Later what others did to them, by the record after
	// which.
	Start        []event.FileState            `json:"start"`
	LaterChanges map[uint64][]event.FileState `json:"later,omitempty"`
	// Count is how many records there are; 0 if an earlier version saved it.
	Count int `json:"records,omitempty"`

	Records  []event.Record    `json:"-"`
	Contents map[string][]byte `json:"-"` // what others left later, and calls that were not made again, by hash
	Files    map[string][]byte `json:"-"` // content of the starting files, by path
}

// Format is the form of folders that is written and read.
const Format = 2

// The parts of a folder.
const (
	manifestFile = "golden.json"
	modelFile    = "model.jsonl"    // replies of the model
	expectedFile = "expected.jsonl" // everything else
	filesDir     = "files"
	stateFile    = "repository.tar"
	packFile     = "objects.pack"
	contentsDir  = "contents"
)

// Bounds of what the files of a golden session may be.
const (
	maxFiles = 2000
	maxBytes = 32 << 20
)

// DropSecrets leaves files out that are known to hold secrets, and tells
// which. The error says that there are too many others.
func DropSecrets(world *past.FileHistory) (left []string, err error) {
	size := int64(0)
	for name, s := range world.Start {
		if secret.IsSecretFile(name) && s.Hash != "" {
			left = append(left, name)
			delete(world.Start, name)
		}
		size += s.Size
	}
	for seq, list := range world.LaterChanges {
		world.LaterChanges[seq] = slices.DeleteFunc(list, func(s event.FileState) bool {
			hidden := secret.IsSecretFile(s.Path) && s.Hash != ""
			if hidden && !slices.Contains(left, s.Path) {
				left = append(left, s.Path)
			}
			return hidden
		})
	}
	slices.Sort(left)
	if len(world.Start) > maxFiles || size > maxBytes {
		return nil,
			message.Errorf("the session started with %d files of %d bytes; a golden session allows %d of %d: record in a smaller folder", len(world.Start), size, maxFiles, maxBytes)
	}
	return left, nil
}

// Write writes the folder, which must not be there yet.
func (g *Golden) Write(dir string) error {
	err := os.MkdirAll(filepath.Dir(dir), 0o755)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	for _, s := range g.Start {
		if past.IsFile(s) && err == nil {
			err = writePart(g.Files[s.Path], dir, filesDir, filepath.FromSlash(s.Path))
		}
	}
	if g.State != nil && err == nil {
		err = errors.Join(writePart(g.State, dir, stateFile), writePart(g.Pack, dir, packFile))
	}
	if err != nil {
		return err
	}
	return g.WriteExpected(dir)
}

// writePart writes a file of the folder.
func writePart(data []byte, name ...string) error {
	file := filepath.Join(name...)
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644))
}

// WriteExpected writes what is expected, and what the model says.
func (g *Golden) WriteExpected(dir string) error {
	for name, data := range g.Contents {
		if err := writePart(data, dir, contentsDir, name); err != nil {
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
		if _, ok := event.AsReply(r.Event); ok {
			to = &said
		}
		to.Write(append(line, '\n'))
	}
	g.Count = len(g.Records)
	about, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		atomicfile.Write(filepath.Join(dir, modelFile), said.Bytes(), 0o644),
		atomicfile.Write(filepath.Join(dir, expectedFile), rest.Bytes(), 0o644),
		atomicfile.Write(filepath.Join(dir, manifestFile), append(about, '\n'), 0o644),
	)
}

// maxGolden bounds each file of a folder that is read.
const maxGolden = 256 << 20

// Read reads a folder.
func Read(dir string) (*Golden, error) {
	in, err := repofile.NewRoot(dir), error(nil)
	read := func(name string) (text []byte) {
		if err != nil {
			return nil
		}
		if text, err = in.Read(name, maxGolden); err != nil && name != manifestFile {
			err = message.Errorf("%s: %v", name, err) // the folder is there, but for this
		}
		return text
	}
	var g Golden
	if text := read(manifestFile); err == nil {
		if bad := json.Unmarshal(text, &g); bad != nil {
			return nil, message.Errorf("%s: %w", manifestFile, bad)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case g.Format == 1 && g.Branch != "":
		return nil, message.Errorf("%s: saved by an earlier version, without its repository history: save it again",
			manifestFile)
	case g.Format < 1 || g.Format > Format || g.Root == "" || g.Session == "":
		return nil, message.Errorf("%s: not a golden session of format %d", manifestFile, Format)
	case g.RepoDir != "" && (!filepath.IsLocal(g.RepoDir) || path.Clean(g.RepoDir) != g.RepoDir):
		return nil, message.Errorf("%s: the workspace is not in a repository", manifestFile)
	case g.RepoDir != "":
		g.State, g.Pack = read(stateFile), read(packFile)
	}
	for _, name := range []string{modelFile, expectedFile} {
		n := 0
		for line := range bytes.Lines(read(name)) {
			n++
			r, bad := decodeRecord(line)
			if bad != nil {
				return nil, message.Errorf("%s:%d: %w", name, n, bad)
			}
			g.Records = append(g.Records, r)
		}
	}
	slices.SortFunc(g.Records, func(a, b event.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	if n := len(g.Records); err == nil && (n == 0 || g.Count > 0 && g.Count != n) {
		err = message.Errorf("%s and %s are not as they were saved: restore them, or save the session again", modelFile,
			expectedFile)
	}
	if err != nil {
		return nil, err
	}
	return &g, nil
}

// decodeRecord reads a record of any log.
func decodeRecord(line []byte) (r event.Record, err error) {
	r, _, err = event.Decode(bytes.TrimRight(line, "\n"), event.LogConversation)
	if u, ok := r.Event.(event.Unknown); ok && err == nil {
		err = message.Errorf("unknown kind of record: %s", u.Type)
	}
	return r, err
}

// StoredFiles is what the folder has of files.
type StoredFiles struct{ Dir string }

// Content is what a file held.
func (k StoredFiles) Content(_ context.Context, s event.FileState, limit int64) ([]byte, error) {
	in := repofile.NewRoot(k.Dir)
	for _, name := range []string{path.Join(contentsDir, s.Hash), path.Join(filesDir, s.Path)} {
		if !filepath.IsLocal(name) || strings.ContainsRune(s.Hash, '/') {
			continue
		}
		if data, err := in.Read(name, limit); err == nil && past.ContentHash(data) == s.Hash {
			return data, nil
		}
	}
	return nil, message.Errorf("%s in %s has changed: %w", s.Path, filepath.Base(k.Dir), fs.ErrNotExist)
}

// Expand has nothing to expand: changes are kept one by one.
func (k StoredFiles) Expand(_ context.Context, c event.FileChange) ([]event.FileChange, error) {
	return []event.FileChange{c}, nil
}
