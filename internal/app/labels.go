package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/core/sanitize"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/record/session"
)

// labelsFile holds what you called sessions: titles, tags, and which are archived. It grants nothing.
const labelsFile = "labels.json"

const (
	maxLabels = 4 << 20
	maxTitle  = 200 // columns of a title
)

// Label is what you called a session.
type Label struct {
	Title    string   `json:"title,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	Archived bool     `json:"archived,omitempty"`
}

func (l Label) empty() bool { return l.Title == "" && len(l.Tags) == 0 && !l.Archived }

// labels are those of all sessions here. What cannot be read is left out.
func (s *Store) labels() map[string]Label {
	all := make(map[string]Label)
	if s.ephemeral {
		return all
	}
	text, err := repofile.Below(s.dir).Read(labelsFile, maxLabels)
	if err != nil || json.Unmarshal(text, &all) != nil {
		return make(map[string]Label)
	}
	return all
}

// Relabel changes the label of a session.
func (s *Store) Relabel(ctx context.Context, id string, change func(*Label)) error {
	if s.ephemeral {
		return inputf("--no-session-persistence saves nothing")
	}
	if _, err := repofile.Below(s.dir).Read(labelsFile, maxLabels); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the labels of sessions: %w", err)
	}
	all := s.labels()
	l := all[id]
	if change(&l); l.empty() {
		delete(all, id)
	} else {
		all[id] = l
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("save the labels of sessions: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(s.dir, labelsFile), append(jsonx.Must(all), '\n'), 0o600); err != nil {
		return fmt.Errorf("save the labels of sessions: %w", err)
	}
	return ctx.Err()
}

// Rename gives a session a title. Without one it is called by its first prompt again.
func (s *Store) Rename(ctx context.Context, id, title string) error {
	title = sanitize.Line(strings.Join(strings.Fields(title), " "), maxTitle)
	return s.Relabel(ctx, id, func(l *Label) { l.Title = title })
}

// labelled is heads with what you called them.
func (s *Store) labelled(heads []session.Head) []session.Head {
	labels := s.labels()
	if len(labels) == 0 {
		return heads
	}
	for i, h := range heads {
		l := labels[h.ID]
		if l.Title != "" {
			heads[i].Meta.Title = l.Title
		}
		heads[i].Tags, heads[i].Archived = slices.Clone(l.Tags), l.Archived
	}
	return heads
}
