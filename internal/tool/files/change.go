package files

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// outcome is the new content of a file and a note about it.
type outcome struct {
	content      []byte
	replacements int // number of replacements, for tools that replace
	note         string
	part         *part // what the diff shows; nil: the whole file
}

// part is a piece of a file whose change reads better than that of the file, such as a notebook's cell.
type part struct {
	before, after []byte
	where         string // follows the path in the title
}

// changing turns f into a tool that gives one file new content, or applies some hunks of that change.
// next computes the new content from the old, which is nil if the file does not exist.
func changing[In any](f tool.Func[In], ws *workspace.Workspace, seen *Seen, which func(In) (path string, only hunks), next func(in In, old []byte) (outcome, error)) tool.Tool {
	f.Work = func(ctx context.Context, in In) (tool.Plan, tool.Run, error) {
		path, only := which(in)
		ch := &change{ws: ws, seen: seen}
		if err := ch.workOut(path, only, func(old []byte) (outcome, error) { return next(in, old) }); err != nil {
			return tool.Plan{Title: path}, nil, ws.Meant(ctx, path, err)
		}
		return tool.Plan{
			Title:   ch.title,
			Effects: []tool.Effect{{Kind: tool.Write, Target: ch.at}},
			Preview: display.Diff{Unified: ch.diff, Added: ch.added, Deleted: ch.deleted},
			Hunks:   ch.hunks,
		}, ch.apply, nil
	}
	return f
}

// change is a planned change of a file's content.
type change struct {
	ws       *workspace.Workspace
	seen     *Seen
	path, at string // as the model named it, and the real path
	title    string
	old      []byte
	outcome
	diff           string
	added, deleted int
	hunks          int    // number of separable hunks
	chosen         string // which hunks are applied; empty if all are
}

// workOut computes what a call would do to the file in its current state.
func (c *change) workOut(name string, only hunks, next func(old []byte) (outcome, error)) (err error) {
	if c.path, c.at, err = locate(c.ws, name); err != nil {
		return err
	}
	old, info, err := load(c.ws, c.at)
	if err != nil {
		return err
	}
	if err := c.seen.check(c.at, info, old); err != nil {
		return err
	}
	if c.outcome, err = next(old); err != nil {
		return err
	}
	if c.old = old; old == nil {
		c.note = tool.JoinNotes(c.note, besides(c.ws, c.at))
	}
	c.hunks = patch.Hunks(old, c.content)
	if only != nil {
		if err := only.check(c.hunks); err != nil {
			return err
		}
		c.chosen, c.replacements = only.of(c.hunks), 0
		if old != nil {
			c.content = patch.Some(old, c.content, only.take)
		}
		c.hunks = 0
	}
	c.title = c.path
	if p := c.part; p != nil {
		c.title, c.hunks = c.path+p.where, 0
		c.diff, c.added, c.deleted = patch.Unified(c.at, p.before, p.after)
		return nil
	}
	c.diff, c.added, c.deleted = patch.Unified(c.at, old, c.content)
	return nil
}

// hunks are the hunks of a change to apply, counted from 1; nil for all.
type hunks []int

func (h hunks) take(n int) bool { return slices.Contains(h, n) }

// of describes how many hunks are applied.
func (h hunks) of(n int) string { return fmt.Sprintf("%d/%d hunks", len(h), n) }

// check checks that the hunks exist.
func (h hunks) check(n int) error {
	for i, one := range h {
		if one < 1 || one > n || h[:i].take(one) {
			return fmt.Errorf("%s: use hunks 1 to %d, each once", tool.OnlyHunks, n)
		}
	}
	if len(h) == 0 {
		return fmt.Errorf("%s names no hunk", tool.OnlyHunks)
	}
	return nil
}

// These limits apply to a diff shown after the change. A diff that needs approval can be shown in full.
const (
	previewLines = 400
	previewChars = 40_000
)

func preview(diff string, added, deleted int) display.Diff {
	text, _ := patch.Cut(diff, previewLines, previewChars)
	return display.Diff{Unified: text, Added: added, Deleted: deleted, More: strings.Count(diff[len(text):], "\n")}
}

// changed is the result of a change for the model.
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

func (c *change) operation() string {
	switch {
	case c.old == nil:
		return "created"
	case bytes.Equal(c.old, c.content):
		return "unchanged"
	}
	return "updated"
}

// apply makes the change, if the file is unchanged since the plan.
func (c *change) apply(ctx context.Context, _ io.Writer) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	at, err := c.ws.Locate(c.path)
	if err != nil {
		return tool.Result{}, err
	}
	now, _, err := load(c.ws, c.at)
	if err != nil {
		return tool.Result{}, err
	}
	if at != c.at || (now == nil) != (c.old == nil) || !bytes.Equal(now, c.old) {
		return tool.Result{}, changedSincePlanned(c.path, c.old, now)
	}
	op := c.operation()
	summary := "unchanged"
	if op != summary {
		summary = fmt.Sprintf("%s, +%d -%d", op, c.added, c.deleted)
		if c.chosen != "" {
			summary += ", " + c.chosen
		}
		if err := c.ws.Swap(c.at, c.old, c.content); errors.Is(err, workspace.ErrChanged) {
			now, _, _ := load(c.ws, c.at) // only needed for the explanation
			return tool.Result{}, changedSincePlanned(c.path, c.old, now)
		} else if err != nil {
			return tool.Result{}, fmt.Errorf("the file could not be written: %w", err)
		}
	}
	diff, cut := patch.Cut(strings.ToValidUTF8(c.diff, "\ufffd"), patch.MaxLines, patch.MaxChars)
	return tool.Result{
		Value: changed{
			OK: true, Path: c.path, Operation: op, Replacements: c.replacements, Size: len(c.content),
			Additions: c.added, Deletions: c.deleted, Diff: diff, DiffTruncated: cut, Note: c.note,
		},
		Summary: summary,
		Show:    preview(c.diff, c.added, c.deleted),
		Saw:     c.seen.note(c.at, hashOf(bytes.NewReader(c.content)), c.content),
	}, nil
}

func changedSincePlanned(path string, then, now []byte) error {
	return fmt.Errorf("%s changed on disk since the change was planned; re-read it%s", path, whatChanged(path, then, now))
}

//go:embed write.md
var writeDoc string

type writeArgs struct {
	Path    string `json:"path" also:"file_path file filename target_file"`
	Content string `json:"content" also:"contents text data file_text"`
	Only    hunks  `json:"only_hunks,omitzero" hidden:"yes"`
}

// Write returns the tool that creates a file or replaces its content.
func Write(ws *workspace.Workspace, seen *Seen) tool.Tool {
	f := tool.Func[writeArgs]{Name: "write", Doc: writeDoc, Aliases: aliases("Write", "writeFile", "create_file", "create")}
	return changing(f, ws, seen, func(a writeArgs) (string, hunks) { return a.Path, a.Only }, func(a writeArgs, old []byte) (o outcome, err error) {
		o.content, err = rewrite(a.Path, old, a.Content)
		return o, err
	})
}

// rewrite returns content in the style of old: with its byte order mark, and with its line ends if they
// are uniform. Reading shows neither, so a model cannot know them.
func rewrite(path string, old []byte, content string) ([]byte, error) {
	if strings.ContainsRune(content, 0) {
		return nil, errors.New("content contains a NUL byte; this tool writes text")
	}
	if err := textOnly(path, old); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(old, []byte(bom)) && !strings.HasPrefix(content, bom) {
		content = bom + content
	}
	if ends := endingOf(string(old)); bytes.ContainsAny(old, "\r\n") && ends != mixed {
		content = ends.write(ends.given(content))
	}
	return append([]byte{}, content...), nil
}
