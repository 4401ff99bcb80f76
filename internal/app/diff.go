package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"coder/internal/event"
	"coder/internal/orchestrator"
	"coder/internal/patch"
	"coder/internal/supervisor"
	"coder/internal/textsafe"
	"coder/internal/toolbox/git"
	"coder/internal/toolrun"
	"coder/internal/uip"
	"coder/internal/undo"
)

const (
	// maxCompared is how long a file may be that is compared line by line.
	maxCompared = 1 << 20
	// maxDiff is how much of a diff is shown.
	maxDiff = 64 << 10
	// filesListed is how many files a summary names.
	filesListed = 200
)

// diff shows what changed in the workspace: since the last commit where git
// looks after it, else in this session.
func (d *desk) diff(ctx context.Context, what orchestrator.Diff) (string, error) {
	o := git.Options{Workspace: d.hands.project.ws, Env: d.childEnv()}
	c, err := git.Look(ctx, o, what.Path)
	switch {
	case errors.Is(err, git.ErrNoRepository):
		return d.sessionDiff(what)
	case err != nil:
		return "", &orchestrator.CommandError{Text: err.Error()}
	}
	if !what.Full {
		return summary(c), nil
	}
	text, cut, err := git.Hunks(ctx, o, what.Path)
	if err != nil {
		return "", &orchestrator.CommandError{Text: err.Error()}
	}
	if what.Path != "" {
		text += d.untracked(c, what.Path)
	}
	if cut {
		text += "\nthere is more; /diff PATH shows one file"
	}
	if text == "" {
		return summary(c), nil
	}
	return strings.TrimRight(text, "\n"), nil
}

// summary names the files that changed.
func summary(c git.Changes) string {
	var lines []string
	added, deleted := 0, 0
	for _, f := range c.Files {
		lines = append(lines, "  "+f.String())
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	for _, name := range c.Untracked {
		lines = append(lines, "  "+name+" (untracked)")
	}
	if len(lines) == 0 {
		return "nothing changed since the last commit"
	}
	head := fmt.Sprintf("since the last commit: %d changed (+%d -%d), %d untracked", len(c.Files), added, deleted, len(c.Untracked))
	return head + "\n" + listed(lines, c.Cut) + noted(c.Note)
}

func noted(note string) string {
	if note == "" {
		return ""
	}
	return "\n" + note
}

// listed joins lines, up to a limit.
func listed(lines []string, more bool) string {
	if len(lines) > filesListed {
		lines, more = lines[:filesListed], true
	}
	text := strings.Join(lines, "\n")
	if more {
		text += "\n  and more"
	}
	return text
}

// untracked shows a file that git does not look after yet as all new.
func (d *desk) untracked(c git.Changes, name string) string {
	name = filepath.ToSlash(filepath.Clean(name))
	for _, u := range c.Untracked {
		if u == name {
			text, _ := d.compare(name, nil)
			return text
		}
	}
	return ""
}

// touched is the files that calls of this session changed, as they were before
// the first of them.
type touched struct {
	names  []string // in the order they were first changed
	before map[string]event.FileState
}

func (t *touched) add(r event.Record) {
	e, ok := r.Event.(event.ToolCallCompleted)
	if !ok {
		return
	}
	for _, c := range e.Changes {
		name := c.Before.Path
		if name == "" {
			name = c.After.Path
		}
		if _, known := t.before[name]; known || name == "" {
			continue
		}
		if t.before == nil {
			t.before = make(map[string]event.FileState)
		}
		t.names, t.before[name] = append(t.names, name), c.Before
	}
}

// sessionDiff shows what this session changed, as far as its calls' records
// tell.
func (d *desk) sessionDiff(what orchestrator.Diff) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var (
		lines []string
		full  strings.Builder
	)
	for _, name := range d.touched.names {
		if !below(name, what.Path) {
			continue
		}
		text, line := d.compareWithRecord(name, d.touched.before[name])
		if line == "" {
			continue
		}
		lines = append(lines, "  "+line)
		full.WriteString(text)
	}
	switch {
	case len(lines) == 0:
		return "nothing that this session changed is different now", nil
	case what.Full && full.Len() > 0:
		return strings.TrimRight(cutDiff(full.String()), "\n"), nil
	}
	return fmt.Sprintf("in this session: %d changed", len(lines)) + "\n" + listed(lines, false), nil
}

// below reports whether name is path or lies below it.
func below(name, dir string) bool {
	dir = path.Clean(filepath.ToSlash(dir))
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

func cutDiff(text string) string {
	if len(text) <= maxDiff {
		return text
	}
	head := text[:strings.LastIndexByte(text[:maxDiff], '\n')+1]
	return head + "there is more; /diff PATH shows one file"
}

// compareWithRecord compares a file with what it was. Both texts are empty if
// it is the same.
func (d *desk) compareWithRecord(name string, before event.FileState) (diff, line string) {
	switch {
	case before.Link != "" || before.Lost || before.Size > maxCompared:
		return "", name + " (changed, and not kept for comparing)"
	case before.Hash == "":
		return d.compare(name, nil)
	}
	old, err := d.keptContent(before.Hash)
	if err != nil {
		return "", name + " (changed, and not kept for comparing)"
	}
	return d.compare(name, old)
}

func (d *desk) keptContent(hash string) ([]byte, error) {
	f, err := undo.OpenStore(filepath.Join(d.data(), "undo"), undo.StoreOptions{Now: d.env.Now}).Open(hash)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxCompared))
}

// compare compares a file as it is with what it was; nil says that it was not
// there.
func (d *desk) compare(name string, old []byte) (diff, line string) {
	now, _, err := d.hands.project.ws.ReadFile(name, maxCompared)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case gone && old == nil:
		return "", ""
	case err != nil && !gone:
		return "", textsafe.Line(name, 200) + " (changed; it cannot be compared)"
	case !gone && old != nil && bytes.Equal(old, now):
		return "", ""
	case bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(now, 0) >= 0:
		return "", textsafe.Line(name, 200) + " (binary)"
	}
	text, added, deleted := patch.Unified(name, old, now)
	line = fmt.Sprintf("%s +%d -%d", textsafe.Line(name, 200), added, deleted)
	switch {
	case old == nil:
		line += " (new)"
	case gone:
		line += " (deleted)"
	}
	return textsafe.Text(text), line
}

// since tells what has changed in files since a call began, as far as what it
// would overwrite was kept.
func (d *desk) since(ctx context.Context, call event.ToolCallRequested) (s supervisor.Since) {
	if d.hands.files == nil || len(call.Before) == 0 && call.Tree == "" {
		return s
	}
	keeper := d.hands.files.get()
	changes, err := keeper.Changes(ctx, toolrun.Kept{Before: call.Before, Tree: call.Tree})
	if err != nil {
		d.warn(fmt.Sprintf("what %s changed could not be determined: %v", call.Tool, err))
	}
	for _, c := range changes {
		name := cmp.Or(c.Before.Path, c.After.Path)
		var old []byte
		if c.Before.Hash != "" {
			if old, err = keeper.Content(ctx, c.Before, maxCompared); err != nil {
				s.Files = append(s.Files, textsafe.Line(name, 200)+" (changed, and not kept for comparing)")
				continue
			}
			if old == nil {
				old = []byte{}
			}
		}
		diff, line := d.compare(name, old)
		if line == "" {
			continue
		}
		s.Files = append(s.Files, line)
		s.Diff.Unified += diff
	}
	s.Diff = uip.Counted(s.Diff.Unified)
	return s
}
