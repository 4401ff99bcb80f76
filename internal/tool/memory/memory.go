// Package memory has the tool by which the model reads the entries of the user's memory and proposes
// new ones. Nothing is written without the user's approval.
package memory

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/authored/notes"
	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed memory.md
var doc string

// Name is the name of the tool.
const Name = "memory"

// Dir is the folder of a project's memory, below the workspace.
const Dir = ".coder/memory"

// Options configures the tool.
type Options struct {
	Workspace *workspace.Workspace
	Entries   func() []notes.Entry
	// UserDir is the folder of the user's own entries; "" without one.
	UserDir string
	// ReadOnlyReason, if not empty, is why entries cannot be proposed.
	ReadOnlyReason string
	// Secret reports whether a text contains a secret.
	Secret func(text string) bool
}

type args struct {
	Name string `json:"name,omitzero" also:"entry title key"`
	Text string `json:"text,omitzero" also:"content memory fact value" doc:"to propose: one line, then details"`
}

// Memory returns the tool that reads an entry, or proposes one.
func Memory(o Options) tool.Tool {
	return tool.Func[args]{
		Name: Name, Doc: doc,
		Aliases: []tool.Alias{{Name: "save_memory"}, {Name: "remember"}},
		PlanRun: func(_ context.Context, a args) (tool.Plan, tool.Run, error) {
			if strings.TrimSpace(a.Text) == "" {
				return o.planRead(a.Name)
			}
			return o.planWrite(a)
		},
	}
}

type readResult struct {
	OK   bool   `json:"ok"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// planRead plans a call that reads an entry. It reads only coder's own memory.
func (o Options) planRead(name string) (tool.Plan, tool.Run, error) {
	name = strings.TrimSuffix(strings.TrimSpace(name), ".md")
	all := o.Entries()
	i := slices.IndexFunc(all, func(e notes.Entry) bool { return e.Name == name })
	if i < 0 {
		return tool.Plan{Title: name}, nil, message.Errorf("no entry %q", name)
	}
	plan := tool.Plan{Title: name, Effects: []tool.Effect{{Kind: tool.Note, Target: "memory"}},
		Preview: display.Text("read the entry " + name)}
	return plan, func(ctx context.Context, _ io.Writer) (tool.Result, error) {
		text := all[i].Text
		return tool.Result{Value: readResult{true, name, text},
			Summary: tool.FormatCount(strings.Count(text, "\n")+1, "line", "lines")}, ctx.Err()
	}, nil
}

type writeResult struct {
	OK   bool   `json:"ok"`
	Name string `json:"name"`
	Path string `json:"path"`
}

// planWrite plans a call that writes an entry, which the user sees as a diff.
func (o Options) planWrite(a args) (plan tool.Plan, run tool.Run, err error) {
	c, err := o.PlanChange(a.Name, a.Text)
	if err != nil {
		return tool.Plan{Title: a.Name}, nil, err
	}
	diff := c.Diff()
	plan = tool.Plan{Title: c.Path, Effects: []tool.Effect{{Kind: tool.Write, Target: c.Path}}, Preview: diff}
	return plan, func(ctx context.Context, _ io.Writer) (tool.Result, error) {
		if err := ctx.Err(); err != nil {
			return tool.Result{}, err
		}
		if !tool.IsApproved(ctx) {
			return tool.Result{}, errors.New("only the user can approve an entry of memory")
		}
		if err := o.Workspace.Swap(c.Path, c.Old, c.New); err != nil {
			return tool.Result{}, err
		}
		summary := fmt.Sprintf("+%d -%d", diff.Added, diff.Deleted)
		return tool.Result{Value: writeResult{true, c.Name, c.Path}, Summary: summary, Show: diff}, nil
	}, nil
}

// Change is a planned change of an entry in the project's memory.
type Change struct {
	Name, Path string
	Old, New   []byte // nil if the file does not exist
}

// Diff returns the change as a diff.
func (c Change) Diff() display.Diff {
	diff, added, deleted := patch.Unified(c.Path, c.Old, c.New)
	return display.Diff{Unified: diff, Added: added, Deleted: deleted}
}

// PlanChange plans an entry. An entry without a name gets one from its text.
func (o Options) PlanChange(name, text string) (c Change, err error) {
	if o.ReadOnlyReason != "" {
		return c, errors.New(o.ReadOnlyReason)
	}
	if name, err = o.Check(name, text); err != nil {
		return c, err
	}
	if slices.ContainsFunc(o.Entries(), func(e notes.Entry) bool { return e.Name == name && e.FromUser }) {
		return c, message.Errorf("the entry %s belongs to the user and applies to all projects; choose another name",
			name)
	}
	c = Change{Name: name, Path: path.Join(Dir, name+".md"), New: []byte(strings.TrimSpace(text) + "\n")}
	c.Old, err = o.ReadFile(c.Path)
	return c, err
}

// ReadFile returns the content of a file in the project's memory, or
// nil if it does not exist. It must not be a link.
func (o Options) ReadFile(at string) ([]byte, error) {
	real, err := o.Workspace.Locate(at)
	if err != nil {
		return nil, err
	}
	if real != at {
		return nil, message.Errorf("%s leads to %s, which is not memory", at, real)
	}
	old, _, err := o.Workspace.ReadFile(at, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return append([]byte{}, old...), err
}

// maxFile limits how much of a file to replace is read.
const maxFile = 64 << 10

// Check returns an error if the text or the name of an entry
// is invalid. It makes a missing name from the text.
func (o Options) Check(name, text string) (string, error) {
	switch {
	case len(text) > notes.MaxEntryBytes:
		return "", message.Errorf("an entry has at most %d bytes", notes.MaxEntryBytes)
	case o.Secret(text):
		return "", errors.New("the text contains a secret; memory never stores secrets")
	}
	if name = strings.TrimSuffix(strings.TrimSpace(name), ".md"); name == "" {
		name = notes.NewName(text, o.isTaken)
	}
	if !notes.IsValidName(name) {
		return "", message.Errorf("%q is not a valid entry name: use letters, digits and -", name)
	}
	return name, nil
}

// isTaken reports whether a file has the name of an entry, also one that is not listed.
func (o Options) isTaken(name string) bool {
	_, err := o.Workspace.Lstat(path.Join(Dir, name+".md"))
	if err != nil && o.UserDir != "" {
		_, err = os.Lstat(filepath.Join(o.UserDir, name+".md"))
	}
	return err == nil
}
