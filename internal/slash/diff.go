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
	"coder/internal/core/sanitize"
	"coder/internal/host/patch"
	"coder/internal/tool/git"
)

const (
	// MaxCompared is the longest file that is compared line by line.
	MaxCompared = 1 << 20
	// maxDiff is how much of a diff is shown, in bytes.
	maxDiff = 64 << 10
	// filesListed is the most files that a summary lists.
	filesListed = 200
)

// Diff shows the changes in the workspace: with "full" line by line, with a path only below that path.
func Diff(changes *Changes) Command {
	return Command{
		Name: "diff", Reads: true, Args: "[full|PATH]", Help: "show what changed in the workspace",
		Run: func(ctx context.Context, c call) (outcome, error) {
			path := c.Args
			if rest, ok := strings.CutPrefix(path+" ", "full "); ok {
				path = strings.TrimSpace(rest)
			}
			blocks, err := changes.diff(ctx, path, c.Args != "")
			if err != nil {
				return wrong("%v", err)
			}
			return show(blocks...)
		},
	}
}

// Changes finds the changed files of a workspace. It is safe for concurrent use.
type Changes struct {
	Git git.Options
	// Kept returns the saved content of an overwritten file by its hash, up to a limit.
	Kept func(hash string, limit int64) ([]byte, error)

	mu     sync.Mutex                 // guards the fields below
	names  []string                   // files changed by calls of this session, in order of their first change
	before map[string]event.FileState // their state before
}

// Add adds a record.
func (d *Changes) Add(r event.Record) {
	e, ok := r.Event.(event.ToolCallCompleted)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range e.Changes {
		name := cmp.Or(c.Before.Path, c.After.Path)
		if _, known := d.before[name]; known || name == "" {
			continue
		}
		if d.before == nil {
			d.before = make(map[string]event.FileState)
		}
		d.names, d.before[name] = append(d.names, name), c.Before
	}
}

// diff returns the changes since the last commit in a git repository, otherwise in this session.
func (d *Changes) diff(ctx context.Context, path string, full bool) ([]display.Block, error) {
	c, err := git.ListChanges(ctx, d.Git, path)
	switch {
	case errors.Is(err, git.ErrNoRepository):
		return d.inSession(path, full), nil
	case err != nil:
		return nil, err
	}
	if path != "" && len(c.Files)+len(c.Untracked) == 0 {
		if _, err := d.Git.Workspace.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no file or folder %s", sanitize.Line(path, 200))
		}
		return []display.Block{display.Text(fmt.Sprintf("nothing in %s changed since the last commit", sanitize.Line(path, 200)))}, nil
	}
	if !full {
		return summary(c), nil
	}
	text, cut, err := git.Hunks(ctx, d.Git, path)
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
		return summary(c), nil
	}
	blocks := []display.Block{display.Counted(strings.TrimRight(text, "\n"))}
	if n := len(c.Untracked); n > 0 && path == "" {
		blocks = append(blocks, display.Text(""), display.Text(fmt.Sprintf(display.Form(n, "%d untracked file not shown; /diff PATH shows it", "%d untracked files not shown; /diff PATH shows one"), n)))
	}
	if cut {
		blocks = append(blocks, display.Text(""), display.Text(moreToCompare))
	}
	return blocks, nil
}

const moreToCompare = "more changes not shown; /diff PATH shows one file"

// Change is the change to a file.
type Change struct {
	Name           string
	Added, Deleted int
	Mark           string // what is to be said besides, in words; "" if nothing
	counted        bool   // its lines were compared
}

// Marks of changes.
const (
	isNew       = "(new)"
	isGone      = "(deleted)"
	isBinary    = "(binary)"
	untracked   = "(untracked)"
	notKept     = "(changed, not saved for comparison)"
	notCompared = "(changed; cannot be compared)"
)

// NotKept returns the change of a file whose earlier content was not saved.
func NotKept(name string) Change {
	return Change{Name: sanitize.Line(event.ShownName(name), 200), Mark: notKept}
}

// String returns the change on one line in any language, with git's status letter.
func (c Change) String() string {
	letter := "M"
	switch c.Mark {
	case isNew:
		letter = "A"
	case isGone:
		letter = "D"
	}
	return strings.TrimSpace(letter + " " + c.Name + " " + c.count())
}

func (c Change) count() string {
	if !c.counted {
		return ""
	}
	return fmt.Sprintf("+%d -%d", c.Added, c.Deleted)
}

func (c Change) row() []display.Cell {
	return append(display.Data("  "+c.Name, c.count()), display.Words(c.Mark)...)
}

// summary lists the changed files.
func summary(c git.Changes) []display.Block {
	var all []Change
	added, deleted := 0, 0
	for _, f := range c.Files {
		one := Change{Name: f.Path, Added: f.Added, Deleted: f.Deleted, counted: !f.Binary}
		if f.Binary {
			one.Mark = isBinary
		}
		all = append(all, one)
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	for _, name := range c.Untracked {
		all = append(all, Change{Name: name, Mark: untracked})
	}
	switch {
	case len(all) == 0 && c.First:
		return []display.Block{display.Text("no commit yet, and no file to show")}
	case len(all) == 0:
		return []display.Block{display.Text("nothing changed since the last commit")}
	}
	head := fmt.Sprintf("since the last commit: %d changed (+%d -%d), %d untracked", len(c.Files), added, deleted, len(c.Untracked))
	if c.First {
		head = fmt.Sprintf("no commit yet: %d staged (+%d -%d), %d untracked", len(c.Files), added, deleted, len(c.Untracked))
	}
	blocks := append([]display.Block{display.Text(head)}, fileList(all, c.Cut)...)
	if c.Note != "" {
		blocks = append(blocks, display.Text(c.Note))
	}
	return blocks
}

// fileList lists changes up to a limit.
func fileList(all []Change, more bool) []display.Block {
	if len(all) > filesListed {
		all, more = all[:filesListed], true
	}
	var t display.Table
	for _, c := range all {
		t.Rows = append(t.Rows, c.row())
	}
	if more {
		return []display.Block{t, display.Text("  and more")}
	}
	return []display.Block{t}
}

// inSession returns this session's changes, as far as its calls' records show them.
func (d *Changes) inSession(path string, full bool) []display.Block {
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
		before := d.before[name]
		text, change := "", NotKept(name)
		if before.Link == "" && !before.Lost && before.Size <= MaxCompared {
			var old []byte
			var err error
			if before.Hash != "" {
				old, err = d.Kept(before.Hash, MaxCompared)
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
		blocks := []display.Block{display.Counted(strings.TrimRight(text, "\n"))}
		if cut {
			blocks = append(blocks, display.Text(moreToCompare))
		}
		return blocks
	}
	return append([]display.Block{display.Text(fmt.Sprintf("in this session: %d changed", len(changed)))}, fileList(changed, false)...)
}

// Compare compares a file's current content with old; nil means that it did not exist. An unchanged file
// has no change.
func (d *Changes) Compare(name string, old []byte) (diff string, c Change) {
	now, _, err := d.Git.Workspace.ReadFile(name, MaxCompared)
	gone := errors.Is(err, fs.ErrNotExist)
	c.Name = sanitize.Line(event.ShownName(name), 200)
	switch {
	case gone && old == nil:
		return "", Change{}
	case err != nil && !gone:
		c.Mark = notCompared
		return "", c
	case !gone && old != nil && bytes.Equal(old, now):
		return "", Change{}
	case bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(now, 0) >= 0:
		c.Mark = isBinary
		return "", c
	case old == nil:
		c.Mark = isNew
	case gone:
		c.Mark = isGone
	}
	diff, c.Added, c.Deleted = patch.Unified(name, old, now)
	c.counted = true
	return sanitize.Text(diff), c
}

// Lines counts the changed lines of a file whose content was old, nil if it did not exist.
func (d *Changes) Lines(name string, old []byte) (added, deleted int, same bool) {
	now, _, err := d.Git.Workspace.ReadFile(name, MaxCompared)
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
