package slash

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/patch"
	"coder/internal/tool/git"
)

const (
	// MaxCompareSize is the longest file that is compared line by line.
	MaxCompareSize = 1 << 20
	// maxDiff is how much of a diff is shown, in bytes.
	maxDiff = 64 << 10
	// maxFiles is the most files that a summary lists.
	maxFiles = 200
)

// Diff shows the changes in the workspace: with "full" line by line, with a path only below that path, with "turn"
// those of one turn.
func Diff(changes *Changes, read ReadDiff) Command {
	return Command{
		Name: "diff", IsReadOnly: true, Args: "[full|turn|PATH]", Help: "show what changed in the workspace",
		Run: func(ctx context.Context, c call) (outcome, error) {
			path := c.Args
			if number, ok := strings.CutPrefix(path+" ", "turn "); ok {
				return changes.diffTurn(ctx, strings.TrimSpace(number), read)
			}
			if rest, ok := strings.CutPrefix(path+" ", "full "); ok {
				path = strings.TrimSpace(rest)
			}
			blocks, err := changes.diff(ctx, path, c.Args != "")
			if err != nil {
				return usageError("%v", err)
			}
			return show(blocks...)
		},
	}
}

// Changes finds the changed files of a workspace. It is safe for concurrent use.
type Changes struct {
	Git git.Options
	// ReadSaved returns the saved content of an overwritten file by its hash, up to a limit.
	ReadSaved func(hash string, limit int64) ([]byte, error)

	mu            sync.Mutex                 // guards the fields below
	names         []string                   // files changed by calls of this session, in order of their first change
	initialStates map[string]event.FileState // their state before
	turns         []Turn
}

// Add adds a record.
func (d *Changes) Add(r event.Record) {
	d.addTurnRecord(r)
	e, ok := r.Event.(event.ToolCallCompleted)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range e.Changes {
		name := cmp.Or(c.Before.Path, c.After.Path)
		if _, known := d.initialStates[name]; known || name == "" {
			continue
		}
		if d.initialStates == nil {
			d.initialStates = make(map[string]event.FileState)
		}
		d.names, d.initialStates[name] = append(d.names, name), c.Before
	}
}

// diff returns the changes since the last commit in a git repository, otherwise in this session.
func (d *Changes) diff(ctx context.Context, path string, full bool) ([]display.Block, error) {
	c, err := git.ListChanges(ctx, d.Git, path)
	switch {
	case errors.Is(err, git.ErrNoRepository):
		return d.sessionDiff(path, full), nil
	case err != nil:
		return nil, err
	}
	if path != "" && len(c.Files)+len(c.Untracked) == 0 {
		if _, err := d.Git.Workspace.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, message.Errorf("no file or folder %s", sanitize.Line(path, 200))
		}
		return []display.Block{display.Text(fmt.Sprintf("nothing in %s changed since the last commit",
			sanitize.Line(path, 200)))}, nil
	}
	if !full {
		return summarizeFiles(c), nil
	}
	text, cut, err := git.WorkingDiff(ctx, d.Git, path)
	if err != nil {
		return nil, err
	}
	if path != "" {
		if name := filepath.ToSlash(filepath.Clean(path)); slices.Contains(c.Untracked, name) { // all of it is new
			added, _ := d.Compare(name, nil)
			text += added
		}
	}
	if text == "" && !cut {
		return summarizeFiles(c), nil
	}
	blocks := []display.Block{display.NewDiff(strings.TrimRight(text, "\n"))}
	if n := len(c.Untracked); n > 0 && path == "" {
		blocks = append(blocks, display.Text(""), display.Text(fmt.Sprintf(display.Plural(n,
			"%d untracked file not shown; /diff PATH shows it", "%d untracked files not shown; /diff PATH shows one"), n)))
	}
	if cut {
		blocks = append(blocks, display.Text(""), display.Text(moreChangesText))
	}
	return blocks, nil
}

const moreChangesText = "more changes not shown; /diff PATH shows one file"

// Change is the change to a file.
type Change struct {
	Name           string
	Added, Deleted int
	Note           string // additional remark; may be empty
	hasCounts      bool   // its lines were compared
}

// Marks of changes.
const (
	noteNew         = "(new)"
	noteDeleted     = "(deleted)"
	noteBinary      = "(binary)"
	noteUntracked   = "(untracked)"
	noteUnsaved     = "(changed, not saved for comparison)"
	noteNotCompared = "(changed; cannot be compared)"
)

// UnsavedChange returns the change of a file whose earlier content was not saved.
func UnsavedChange(name string) Change {
	return Change{Name: sanitize.Line(event.DisplayName(name), 200), Note: noteUnsaved}
}

// String returns the change on one line in any language, with git's status letter.
func (c Change) String() string {
	letter := "M"
	switch c.Note {
	case noteNew:
		letter = "A"
	case noteDeleted:
		letter = "D"
	}
	return strings.TrimSpace(letter + " " + c.Name + " " + c.countText())
}

func (c Change) countText() string {
	if !c.hasCounts {
		return ""
	}
	return fmt.Sprintf("+%d -%d", c.Added, c.Deleted)
}

func (c Change) tableRow() []display.Cell {
	return append(display.DataCells("  "+c.Name, c.countText()), display.TextCells(c.Note)...)
}

// summarizeFiles lists the changed files.
func summarizeFiles(c git.Changes) []display.Block {
	var all []Change
	added, deleted := 0, 0
	for _, f := range c.Files {
		one := Change{Name: f.Path, Added: f.Added, Deleted: f.Deleted, hasCounts: !f.Binary}
		if f.Binary {
			one.Note = noteBinary
		}
		all = append(all, one)
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	for _, name := range c.Untracked {
		all = append(all, Change{Name: name, Note: noteUntracked})
	}
	switch {
	case len(all) == 0 && c.NoCommits:
		return []display.Block{display.Text("no commit yet, and no file to show")}
	case len(all) == 0:
		return []display.Block{display.Text("nothing changed since the last commit")}
	}
	head := fmt.Sprintf("since the last commit: %d changed (+%d -%d), %d untracked", len(c.Files), added, deleted,
		len(c.Untracked))
	if c.NoCommits {
		head = fmt.Sprintf("no commit yet: %d staged (+%d -%d), %d untracked", len(c.Files), added, deleted, len(c.Untracked))
	}
	blocks := append([]display.Block{display.Text(head)}, fileList(all, c.Truncated)...)
	if c.Note != "" {
		blocks = append(blocks, display.Text(c.Note))
	}
	return blocks
}

// fileList lists changes up to a limit.
func fileList(all []Change, more bool) []display.Block {
	if len(all) > maxFiles {
		all, more = all[:maxFiles], true
	}
	var t display.Table
	for _, c := range all {
		t.Rows = append(t.Rows, c.tableRow())
	}
	if more {
		return []display.Block{t, display.Text("  and more")}
	}
	return []display.Block{t}
}

// sessionDiff returns this session's changes, as far as its calls' records show them.
func (d *Changes) sessionDiff(path string, full bool) []display.Block {
	d.mu.Lock()
	defer d.mu.Unlock()
	var (
		changed []Change
		all     strings.Builder
	)
	dir := filepath.ToSlash(filepath.Clean(path))
	for _, name := range d.names {
		if dir != "." && name != dir && !strings.HasPrefix(name, dir+"/") {
			continue
		}
		before := d.initialStates[name]
		text, change := "", UnsavedChange(name)
		if before.Link == "" && !before.ContentLost && before.Size <= MaxCompareSize {
			var old []byte
			var err error
			if before.Hash != "" {
				old, err = d.ReadSaved(before.Hash, MaxCompareSize)
			}
			if err == nil {
				text, change = d.Compare(name, old)
			}
		}
		if change != (Change{}) {
			changed = append(changed, change)
			all.WriteString(text)
		}
	}
	switch {
	case len(changed) == 0 && dir != ".":
		return []display.Block{display.Text(fmt.Sprintf("no changes by this session in %s remain", sanitize.Line(path, 200)))}
	case len(changed) == 0:
		return []display.Block{display.Text("no changes by this session remain")}
	case full && all.Len() > 0:
		text, cut := all.String(), all.Len() > maxDiff
		if cut {
			text = text[:strings.LastIndexByte(text[:maxDiff], '\n')+1]
		}
		blocks := []display.Block{display.NewDiff(strings.TrimRight(text, "\n"))}
		if cut {
			blocks = append(blocks, display.Text(moreChangesText))
		}
		return blocks
	}
	return append([]display.Block{display.Text(fmt.Sprintf("in this session: %d changed", len(changed)))},
		fileList(changed, false)...)
}

// Compare compares a file's current content with old; nil means that it did not exist. An unchanged file
// has no change.
func (d *Changes) Compare(name string, old []byte) (diff string, c Change) {
	now, _, err := d.Git.Workspace.ReadFile(name, MaxCompareSize)
	gone := errors.Is(err, fs.ErrNotExist)
	c.Name = sanitize.Line(event.DisplayName(name), 200)
	switch {
	case gone && old == nil:
		return "", Change{}
	case err != nil && !gone:
		c.Note = noteNotCompared
		return "", c
	case !gone && old != nil && bytes.Equal(old, now):
		return "", Change{}
	case bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(now, 0) >= 0:
		c.Note = noteBinary
		return "", c
	case old == nil:
		c.Note = noteNew
	case gone:
		c.Note = noteDeleted
	}
	diff, c.Added, c.Deleted = patch.Unified(name, old, now)
	c.hasCounts = true
	return sanitize.Text(diff), c
}

// CountLines counts the changed lines of a file whose content was old, nil if it did not exist.
func (d *Changes) CountLines(name string, old []byte) (added, deleted int, same bool) {
	now, _, err := d.Git.Workspace.ReadFile(name, MaxCompareSize)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !gone:
		return 0, 0, false
	case gone == (old == nil) && bytes.Equal(old, now):
		return 0, 0, true
	case bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(now, 0) >= 0:
		return 0, 0, false
	}
	_, added, deleted = patch.Unified(name, old, now)
	return added, deleted, false
}
