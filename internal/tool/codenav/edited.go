//go:build unix

package codenav

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/host/lsp"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// defaultLimit is how long an edit waits to find out what it broke.
const defaultLimit = 2 * time.Second

// These limits apply to the report about an edit.
const (
	maxWritten = 8  // checked files
	maxNew     = 20 // reported problems
)

// Diagnoser reports what an edit broke. It reports nothing if a server is slow, starting, broken or missing.
type Diagnoser struct {
	Workspace *workspace.Workspace
	Pool      *lsp.Pool
	Limit     time.Duration // maximum delay of an edit; 2 seconds if zero
}

// Edit is the state of files before they are written.
type Edit struct {
	by    *Diagnoser
	files []*before
}

// before is the earlier state of a file.
type before struct {
	path  string
	text  []byte
	known bool
	wrong map[string]int // count of each problem, by message
}

func (d *Diagnoser) limit() time.Duration { return cmp.Or(d.Limit, defaultLimit) }

// Before records the state of files that are about to be written.
func (d *Diagnoser) Before(ctx context.Context, paths ...string) *Edit {
	ctx, cancel := context.WithTimeout(ctx, d.limit()/4)
	defer cancel()
	e := &Edit{by: d}
	for _, path := range paths[:min(len(paths), maxWritten)] {
		text, _, err := d.Workspace.ReadFile(path, maxFile)
		b := &before{path: path, text: text}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			b.known = true // a new file has no old problems
		case err != nil:
			continue
		case d.Pool.Running(path):
			d.learn(ctx, b)
		}
		e.files = append(e.files, b)
	}
	return e
}

// learn asks for the problems of a file.
func (d *Diagnoser) learn(ctx context.Context, b *before) {
	r, err := d.Pool.Diagnose(ctx, b.path, b.text)
	if err != nil || r.Pending {
		return
	}
	b.known, b.wrong = true, make(map[string]int)
	for _, p := range r.Diagnostics {
		b.wrong[saying(p)]++
	}
}

// saying returns a diagnostic's message without positions: an edit moves lines, and messages mention them.
func saying(d lsp.Diagnostic) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s ", d.Severity, d.Source, d.Code)
	for _, r := range d.Message {
		if r < '0' || r > '9' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// New describes the problems that did not exist before the files were written, and returns their
// number. It returns nothing if the answer does not come in time.
func (e *Edit) New(ctx context.Context) (problems []string, n int) {
	ctx, cancel := context.WithTimeout(ctx, e.by.limit()/4*3)
	defer cancel()
	src := &sources{ws: e.by.Workspace}
	for _, b := range e.files {
		for _, d := range e.by.after(ctx, b, src) {
			if n++; n <= maxNew {
				problems = append(problems, src.diagnostic(d))
			}
		}
	}
	if n > maxNew {
		problems = append(problems, fmt.Sprintf("… and %d more", n-maxNew))
	}
	return problems, n
}

// after returns the problems of a file that are new.
func (d *Diagnoser) after(ctx context.Context, b *before, src *sources) (list []lsp.Diagnostic) {
	text, _, err := d.Workspace.ReadFile(b.path, maxFile)
	if err != nil || bytes.Equal(text, b.text) {
		return nil
	}
	if !b.known {
		if d.learn(ctx, b); !b.known {
			return nil
		}
	}
	r, err := d.Pool.Diagnose(ctx, b.path, text)
	if err != nil {
		return nil
	}
	src.add(b.path, text)
	seen := make(map[string]int)
	for _, p := range r.Diagnostics {
		said := saying(p)
		if seen[said]++; seen[said] > b.wrong[said] && p.Severity <= lsp.Warning {
			list = append(list, p)
		}
	}
	return list
}

// WithDiagnostics makes a tool that writes files report what it broke: it adds the new problems to a
// successful result as "diagnostics". Without a Diagnoser that has a pool it returns t unchanged.
func WithDiagnostics(t tool.Tool, d *Diagnoser) tool.Tool {
	if d == nil || d.Pool == nil {
		return t
	}
	return diagnosing{t, d}
}

type diagnosing struct {
	tool.Tool
	d *Diagnoser
}

// Prepare prepares the tool's call.
func (t diagnosing) Prepare(ctx context.Context, args json.RawMessage) (tool.Call, error) {
	c, err := t.Tool.Prepare(ctx, args)
	if err != nil {
		return nil, err
	}
	return diagnosingCall{c, t.d}, nil
}

type diagnosingCall struct {
	tool.Call
	d *Diagnoser
}

// Run runs the call and checks what it wrote.
func (c diagnosingCall) Run(ctx context.Context, out io.Writer) (tool.Result, error) {
	var paths []string
	for _, e := range c.Plan().Effects {
		if e.Kind == tool.Write {
			paths = append(paths, e.Target)
		}
	}
	edit := c.d.Before(ctx, paths...)
	r, err := c.Call.Run(ctx, out)
	if err != nil || r.Failed {
		return r, err
	}
	if problems, n := edit.New(ctx); n > 0 {
		r.Value = withProblems{r.Value, problems}
		r.Summary += ", " + tool.Count(n, "new problem", "new problems")
	}
	return r, nil
}

// withProblems marshals like its value, with diagnostics added.
type withProblems struct {
	value    any
	problems []string
}

func (v withProblems) MarshalJSON() ([]byte, error) {
	b, err := jsonx.JSON(v.value)
	if err != nil || len(b) < 2 || b[0] != '{' {
		return b, err
	}
	more, err := jsonx.JSON(struct {
		Diagnostics []string `json:"diagnostics"`
	}{v.problems})
	if err != nil || len(b) == 2 {
		return more, err
	}
	return append(append(b[:len(b)-1], ','), more[1:]...), nil
}
