package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"coder/internal/core/display"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// changer is a tool that gives one file new content. Its calls carry the whole
// change from Prepare to Run.
type changer[In any] struct {
	tool.Func[In]
	ws   *workspace.Workspace
	seen *Seen
	path func(In) string
	// next makes the new content from the old, which is nil if there is no
	// file.
	next func(in In, old []byte) (outcome, error)
}

// outcome is the new content of a file and what there is to say about it.
type outcome struct {
	content      []byte
	replacements int // how many were made, if that is how it works
	note         string
}

// Prepare works out the change and plans it.
func (t changer[In]) Prepare(ctx context.Context, args json.RawMessage) (tool.Call, error) {
	var ch *change
	f := t.Func
	f.Plan = func(ctx context.Context, in In) (plan tool.Plan, err error) {
		if ch, err = t.change(in); err != nil {
			return tool.Plan{}, t.ws.Meant(ctx, t.path(in), err)
		}
		return ch.plan(), nil
	}
	f.Do = func(ctx context.Context, _ In, _ io.Writer) (tool.Result, error) {
		return ch.apply(ctx)
	}
	return f.Prepare(ctx, args)
}

// change works out what a call would do to the file as it is now.
func (t changer[In]) change(in In) (*change, error) {
	path, at, err := locate(t.ws, t.path(in))
	if err != nil {
		return nil, err
	}
	old, info, err := load(t.ws, at)
	if err != nil {
		return nil, err
	}
	if err := t.seen.check(at, info, old); err != nil {
		return nil, err
	}
	next, err := t.next(in, old)
	if err != nil {
		return nil, err
	}
	if old == nil {
		next.note = noted(next.note, besides(t.ws, at))
	}
	ch := &change{ws: t.ws, seen: t.seen, path: path, at: at, old: old, outcome: next}
	ch.diff, ch.added, ch.deleted = patch.Unified(at, old, next.content)
	return ch, nil
}

// change is a file about to get new content.
type change struct {
	ws       *workspace.Workspace
	seen     *Seen
	path, at string // as the model named it, and where it really is
	old      []byte
	outcome
	diff           string
	added, deleted int
}

// Bounds of a diff shown to a person once it is done. One to be approved is
// shown whole, for whoever asks to see it so.
const (
	previewLines = 400
	previewChars = 40_000
)

func (c *change) plan() tool.Plan {
	return tool.Plan{
		Title:   c.path,
		Effects: []tool.Effect{{Kind: tool.Write, Target: c.at}},
		Preview: display.Diff{Unified: c.diff, Added: c.added, Deleted: c.deleted},
	}
}

func (c *change) preview() display.Diff { return preview(c.diff, c.added, c.deleted) }

func preview(diff string, added, deleted int) display.Diff {
	text, cut := patch.Cut(diff, previewLines, previewChars)
	if cut {
		text += fmt.Sprintf("… %d more lines\n", strings.Count(diff[len(text):], "\n"))
	}
	return display.Diff{Unified: text, Added: added, Deleted: deleted}
}

// changed is what the model is told of a change.
type changed struct {
	OK            bool   `json:"ok"`
	Path          string `json:"path"`
	Operation     string `json:"operation"`
	Replacements  int    `json:"replacements,omitzero"`
	Size          int    `json:"size"`
	Additions     int    `json:"additions"`
	Deletions     int    `json:"deletions"`
	Diff          string `json:"diff"`
	DiffTruncated bool   `json:"diff_truncated"`
	Note          string `json:"note,omitzero"`
}

// apply makes the change, if the file is still what it was planned against.
func (c *change) apply(ctx context.Context) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	if err := c.still(); err != nil {
		return tool.Result{}, err
	}
	op := c.operation()
	if op != "unchanged" {
		if err := c.ws.Swap(c.at, c.old, c.content); err != nil {
			return tool.Result{}, c.refused(err)
		}
	}
	res := c.result(op)
	res.Saw = c.seen.note(c.at, c.content)
	return res, nil
}

// refused says why a change was not made.
func (c *change) refused(err error) error {
	if errors.Is(err, workspace.ErrChanged) {
		now, _, _ := load(c.ws, c.at) // what it is only helps to explain
		return changedSincePlanned(c.path, c.old, now)
	}
	return fmt.Errorf("write: %w", err)
}

// still makes sure that the name leads to the same file with the same content.
func (c *change) still() error {
	at, err := c.ws.Locate(c.path)
	if err != nil {
		return err
	}
	now, _, err := load(c.ws, c.at)
	if err != nil {
		return err
	}
	if at != c.at || (now == nil) != (c.old == nil) || !bytes.Equal(now, c.old) {
		return changedSincePlanned(c.path, c.old, now)
	}
	return nil
}

func changedSincePlanned(path string, then, now []byte) error {
	return fmt.Errorf("%s changed on disk since it was planned; read it again%s", path, whatChanged(path, then, now))
}

func (c *change) operation() string {
	switch {
	case c.old == nil:
		return "created"
	case bytes.Equal(c.old, c.content):
		return "unchanged"
	}
	return "updated"
}

func (c *change) result(op string) tool.Result {
	diff, cut := patch.Cut(strings.ToValidUTF8(c.diff, "\ufffd"), patch.MaxLines, patch.MaxChars)
	return tool.Result{
		Value: changed{
			OK: true, Path: c.path, Operation: op, Replacements: c.replacements, Size: len(c.content),
			Additions: c.added, Deletions: c.deleted, Diff: diff, DiffTruncated: cut, Note: c.note,
		},
		Summary: summary(op, c.added, c.deleted),
		Show:    c.preview(),
	}
}

func summary(op string, added, deleted int) string {
	if op == "unchanged" {
		return op
	}
	return fmt.Sprintf("%s, +%d -%d", op, added, deleted)
}
