package files

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// newContent is the new content of a file and a note about it.
type newContent struct {
	content      []byte
	replacements int // number of replacements, for tools that replace
	note         string
	hunkText     *part // what the diff shows; nil: the whole file
}

// part is a piece of a file whose change reads better than that of the file, such as a notebook's cell.
type part struct {
	before, after []byte
	where         string // follows the path in the title
}

// changeTool turns f into a tool that gives one file new content, or applies some hunks of that change.
// next computes the new content from the old, which is nil if the file does not exist.
func changeTool[In any](f tool.Func[In], ws *workspace.Workspace, seen *SeenFiles,
	which func(In) (path string, only hunkSelection), next func(in In, old []byte) (newContent, error)) tool.Tool {
	f.PlanRun = func(ctx context.Context, in In) (tool.Plan, tool.Run, error) {
		path, only := which(in)
		ch := &change{ws: ws, seen: seen}
		if err := ch.compute(path, only, func(old []byte) (newContent, error) { return next(in, old) }); err != nil {
			return tool.Plan{Title: path}, nil, ws.AddSuggestion(ctx, path, err)
		}
		return tool.Plan{
			Title:   ch.title,
			Effects: []tool.Effect{{Kind: tool.Write, Target: ch.realPath}},
			Preview: display.Diff{Unified: ch.diff, Added: ch.added, Deleted: ch.deleted},
			Hunks:   ch.hunks,
		}, ch.apply, nil
	}
	return f
}

// change is a planned change of a file's content.
type change struct {
	ws             *workspace.Workspace
	seen           *SeenFiles
	path, realPath string // as the model named it, and the real path
	title          string
	old            []byte
	newContent
	diff           string
	added, deleted int
	hunks          int    // number of separable hunks
	chosen         string // which hunks are applied; empty if all are
}

// compute computes what a call would do to the file in its current state.
func (c *change) compute(name string, only hunkSelection, next func(old []byte) (newContent, error)) (err error) {
	if c.path, c.realPath, err = locate(c.ws, name); err != nil {
		return err
	}
	old, info, err := loadFile(c.ws, c.realPath, maxFile)
	if err != nil {
		return err
	}
	if err := c.seen.checkUnchanged(c.realPath, info, old); err != nil {
		return err
	}
	if c.newContent, err = next(old); err != nil {
		return err
	}
	if c.old = old; old == nil {
		c.note = tool.JoinNotes(c.note, caseNote(c.ws, c.realPath))
	}
	if n := patch.ChangedBytes(old, c.content); n > maxChanged {
		return message.Errorf("the changed lines of %s span %d bytes, the limit is %d; change less at once, or use a command",
			c.path, n, maxChanged)
	}
	c.hunks = patch.CountHunks(old, c.content)
	if only != nil {
		if err := only.check(c.hunks); err != nil {
			return err
		}
		c.chosen, c.replacements = only.describe(c.hunks), 0
		if old != nil {
			c.content = patch.ApplyHunks(old, c.content, only.includes)
		}
		c.hunks = 0
	}
	c.title = c.path
	if p := c.hunkText; p != nil {
		c.title, c.hunks = c.path+p.where, 0
		c.diff, c.added, c.deleted = patch.Unified(c.realPath, p.before, p.after)
		return nil
	}
	c.diff, c.added, c.deleted = patch.Unified(c.realPath, old, c.content)
	return nil
}

// hunkSelection are the hunks of a change to apply, counted from 1; nil for all.
type hunkSelection []int

func (h hunkSelection) includes(n int) bool { return slices.Contains(h, n) }

// describe describes how many hunks are applied.
func (h hunkSelection) describe(n int) string { return fmt.Sprintf("%d/%d hunks", len(h), n) }

// check checks that the hunks exist.
func (h hunkSelection) check(n int) error {
	for i, one := range h {
		if one < 1 || one > n || h[:i].includes(one) {
			return message.Errorf("%s: use hunks 1 to %d, each once", tool.OnlyHunks, n)
		}
	}
	if len(h) == 0 {
		return message.Errorf("%s names no hunk", tool.OnlyHunks)
	}
	return nil
}

// These limits apply to a diff shown after the change. A diff that needs approval can be shown in full.
const (
	previewLines = 400
	previewChars = 40_000
)

func diffPreview(diff string, added, deleted int) display.Diff {
	text, _ := patch.Truncate(diff, previewLines, previewChars)
	return display.Diff{Unified: text, Added: added, Deleted: deleted, OmittedLines: strings.Count(diff[len(text):], "\n")}
}

// changeResult is the result of a change for the model.
type changeResult struct {
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
	if same, err := c.isUnchanged(); err != nil {
		return tool.Result{}, err
	} else if at != c.realPath || !same {
		return tool.Result{}, c.staleError()
	}
	op := c.operation()
	summary := "unchanged"
	if op != summary {
		summary = fmt.Sprintf("%s, +%d -%d", op, c.added, c.deleted)
		if c.chosen != "" {
			summary += ", " + c.chosen
		}
		if err := c.ws.Swap(c.realPath, c.old, c.content); errors.Is(err, workspace.ErrChanged) {
			return tool.Result{}, c.staleError()
		} else if err != nil {
			return tool.Result{}, message.Errorf("the file could not be written: %w", err)
		}
	}
	diff, cut := patch.Truncate(strings.ToValidUTF8(c.diff, "\ufffd"), patch.MaxLines, patch.MaxChars)
	return tool.Result{
		Value: changeResult{
			OK: true, Path: c.path, Operation: op, Replacements: c.replacements, Size: len(c.content),
			Additions: c.added, Deletions: c.deleted, Diff: diff, DiffTruncated: cut, Note: c.note,
		},
		Summary:   summary,
		Show:      diffPreview(c.diff, c.added, c.deleted),
		SeenFiles: c.seen.remember(c.realPath, hashContent(bytes.NewReader(c.content)), c.content),
	}, nil
}

// isUnchanged reports whether the file is as planned. It does not hold the content once more.
func (c *change) isUnchanged() (bool, error) {
	f, info, err := c.ws.Open(c.realPath)
	if errors.Is(err, fs.ErrNotExist) {
		return c.old == nil, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := checkWritable(c.realPath, info); err != nil {
		return false, err
	}
	return c.old != nil && workspace.HasContent(f, c.old), nil
}

func (c *change) staleError() error {
	now, _, _ := loadFile(c.ws, c.realPath, maxChanged) // only needed for the explanation
	return staleError(c.path, c.old, now)
}

func staleError(path string, then, now []byte) error {
	return message.Errorf("%s changed on disk since the change was planned; re-read it%s", path,
		describeChange(path, then, now))
}

//go:embed write.md
var writeDoc string

type writeArgs struct {
	Path    string        `json:"path" also:"file_path file filename target_file"`
	Content string        `json:"content" also:"contents text data file_text"`
	Only    hunkSelection `json:"only_hunks,omitzero" hidden:"yes"`
}

// Write returns the tool that creates a file or replaces its content.
func Write(ws *workspace.Workspace, seen *SeenFiles) tool.Tool {
	f := tool.Func[writeArgs]{Name: "write", Doc: writeDoc,
		Aliases: toolAliases("Write", "writeFile", "create_file", "create")}
	return changeTool(f, ws, seen, func(a writeArgs) (string, hunkSelection) { return a.Path, a.Only },
		func(a writeArgs, old []byte) (o newContent, err error) {
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
	if err := checkText(path, old); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(old, []byte(bom)) && !strings.HasPrefix(content, bom) {
		content = bom + content
	}
	if ends := detectEnding(viewText(old)); bytes.ContainsAny(old, "\r\n") && ends != mixedEnds {
		content = ends.convert(ends.normalize(content))
	}
	return append([]byte{}, content...), nil
}
