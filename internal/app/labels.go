package app

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/record/session"
)

// labelsFile holds what you called sessions: titles, tags, and which are archived. It grants nothing.
const labelsFile = "labels.json"

const (
	maxLabels     = 4 << 20
	maxTitleWidth = 200 // columns of a title
)

// Label is what you called a session.
type Label struct {
	Title    string   `json:"title,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	Archived bool     `json:"archived,omitempty"`
}

func (l Label) isEmpty() bool { return l.Title == "" && len(l.Tags) == 0 && !l.Archived }

// readLabels returns the labels of all sessions in the workspace.
func (s *Store) readLabels() (map[string]Label, error) {
	all := make(map[string]Label)
	if s.ephemeral {
		return all, nil
	}
	text, err := repofile.NewRoot(s.dir).Read(labelsFile, maxLabels)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, message.Errorf("read the labels of sessions in %s: %w", filepath.Join(s.dir, labelsFile), err)
	}
	return all, nil
}

// ChangeLabel changes the label of a session. It changes nothing in a file that it cannot read.
func (s *Store) ChangeLabel(ctx context.Context, id string, change func(*Label)) error {
	if s.ephemeral {
		return inputErrorf("--no-session-persistence saves nothing")
	}
	beside := s.Path("sessions") // writing a file locks its folder
	if err := os.MkdirAll(beside, 0o700); err != nil {
		return message.Errorf("save the labels of sessions: %w", err)
	}
	release, err := atomicfile.Lock(beside)
	if err != nil {
		return message.Errorf("save the labels of sessions: %w", err)
	}
	defer release()
	all, err := s.readLabels()
	if err != nil {
		return err
	}
	l := all[id]
	if change(&l); l.isEmpty() {
		delete(all, id)
	} else {
		all[id] = l
	}
	if err := atomicfile.Write(filepath.Join(s.dir, labelsFile), append(jsonx.MustMarshal(all), '\n'), 0o600); err != nil {
		return message.Errorf("save the labels of sessions: %w", err)
	}
	return ctx.Err()
}

// Rename gives a session a title. Without one it is called by its first prompt again.
func (s *Store) Rename(ctx context.Context, id, title string) error {
	title = sanitize.Line(strings.Join(strings.Fields(title), " "), maxTitleWidth)
	return s.ChangeLabel(ctx, id, func(l *Label) { l.Title = title })
}

// withLabels is heads with what you called them.
func (s *Store) withLabels(heads []session.Head) []session.Head {
	labels, err := s.readLabels()
	if err != nil || len(labels) == 0 {
		return heads // without labels; changing them reports the error
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
