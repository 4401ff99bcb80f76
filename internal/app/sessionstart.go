package app

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/host/repofile"
	"coder/internal/record/gitstate"
)

// sessionStart saves what a session begins with, before its first call. A session that
// makes none needs nothing of it.
type sessionStart struct {
	app *App
	kit *toolkit

	mu    sync.Mutex // guards begun
	begun bool
}

// observe looks for calls on record: a session that has some has begun.
func (s *sessionStart) observe(r event.Record) {
	if _, ok := r.Event.(event.ToolCallRequested); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.begun = true
	}
}

// keep saves it once. Where it cannot be saved the session goes on, and may not run
// again as it did.
func (s *sessionStart) keep(ctx context.Context, readOnly bool) (tree, repository string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.app.Store().barred["undo"] != nil {
		return "", ""
	}
	r, found := gitstate.Find(s.app.Root)
	if readOnly && r.Large() {
		return "", "" // reading a file must not wait for a look at all of them
	}
	s.begun = true
	tree, repository, err := s.kit.files.get().Start(ctx, readOnly, func(ignored []event.FileState, committed func() map[string]bool) ([]byte, error) {
		return r.SaveBeyond(committed, jsonx.Must(startNotes{found, s.app.seenByGit(), ignored, configsOf(r)}))
	})
	if err != nil { // a call that changes files says why
		return "", ""
	}
	return tree, repository
}

// startNotes are what is noted beside the state of a repository.
type startNotes struct {
	Repository bool              `json:"repository"` // there was one
	Seen       []string          `json:"seen"`       // names in the data folder that git does not ignore
	Ignored    []event.FileState `json:"ignored"`    // files that it ignores
	// Configs are those of the repository, by name. They count for this user alone: git runs
	// what they name.
	Configs map[string][]byte `json:"configs,omitempty"`
}

// configsOf are the configurations of a repository, and what else tells git how to treat files.
func configsOf(r gitstate.Repository) map[string][]byte {
	all := make(map[string][]byte)
	if r.Common == "" {
		return all
	}
	for _, name := range []string{"config", "config.worktree", "info/attributes", "info/sparse-checkout"} {
		if text, err := repofile.Own(filepath.Join(r.Common, filepath.FromSlash(name)), maxGitConfig); err == nil {
			all[name] = text
		}
	}
	return all
}

// maxGitConfig is how long a configuration may be that is saved.
const maxGitConfig = 1 << 20

// notesOf reads them; there are none of a state that was not saved.
func notesOf(state []byte) (n startNotes) {
	if text, err := gitstate.Notes(state); err == nil {
		_ = json.Unmarshal(text, &n) // of a damaged state it will be said
	}
	return n
}

// seenByGit are the names in the data folder that git does not ignore.
func (a *App) seenByGit() (names []string) {
	entries, _ := os.ReadDir(a.data())
	for _, e := range entries {
		if !slices.Contains(append([]string{"tmp", ".gitignore"}, dataFolders...), e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// hideData are the patterns by which git in a copy overlooks the data folder at a place
// in the repository, but for the names that it saw when a session began.
func hideData(at string, seen []string) []string {
	data := "/" + path.Join(filepath.ToSlash(at), ".coder") + "/"
	patterns := []string{data + "*"}
	for _, name := range seen {
		patterns = append(patterns, "!"+data+name)
	}
	return patterns
}
