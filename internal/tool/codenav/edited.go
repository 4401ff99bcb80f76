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

// defaultWait is how long an edit waits to find out what it broke.
const defaultWait = 2 * time.Second

// These limits apply to the report about an edit.
const (
	maxChecked  = 8  // checked files
	maxProblems = 20 // reported problems
)

// Diagnoser reports what an edit broke. It reports nothing if a server is slow, starting, broken or missing.
type Diagnoser struct {
	Workspace *workspace.Workspace
	Pool      *lsp.Pool
	Limit     time.Duration // maximum delay of an edit; 2 seconds if zero
}

// Edit is the state of files before they are written.
type Edit struct {
	diagnoser *Diagnoser
	files     []*fileState
}

// fileState is the earlier state of a file.
type fileState struct {
	path          string
	text          []byte
	known         bool
	problemCounts map[string]int // count of each problem, by message
}

func (d *Diagnoser) limit() time.Duration { return cmp.Or(d.Limit, defaultWait) }

// Snapshot records the state of files that are about to be written.
func (d *Diagnoser) Snapshot(ctx context.Context, paths ...string) *Edit {
	ctx, cancel := context.WithTimeout(ctx, d.limit()/4)
	defer cancel()
	e := &Edit{diagnoser: d}
	for _, path := range paths[:min(len(paths), maxChecked)] {
		text, _, err := d.Workspace.ReadFile(path, maxFile)
		b := &fileState{path: path, text: text}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			b.known = true // a new file has no old problems
		case err != nil:
			continue
		case d.Pool.IsRunning(path):
			d.loadProblems(ctx, b)
		}
		e.files = append(e.files, b)
	}
	return e
}

// loadProblems asks for the problems of a file.
func (d *Diagnoser) loadProblems(ctx context.Context, b *fileState) {
	r, err := d.Pool.Diagnose(ctx, b.path, b.text)
	if err != nil || r.Pending {
		return
	}
	b.known, b.problemCounts = true, make(map[string]int)
	for _, p := range r.Diagnostics {
		b.problemCounts[messageKey(p)]++
	}
}

// messageKey returns a diagnostic's message without positions: an edit moves lines, and messages mention them.
func messageKey(d lsp.Diagnostic) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s ", d.Severity, d.Source, d.Code)
	for _, r := range d.Message {
		if r < '0' || r > '9' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// NewProblems describes the problems that did not exist before the files were written, and returns their
// number. It returns nothing if the answer does not come in time.
func (e *Edit) NewProblems(ctx context.Context) (problems []string, n int) {
	ctx, cancel := context.WithTimeout(ctx, e.diagnoser.limit()/4*3)
	defer cancel()
	src := &sourceReader{ws: e.diagnoser.Workspace}
	for _, b := range e.files {
		for _, d := range e.diagnoser.findNew(ctx, b, src) {
			if n++; n <= maxProblems {
				problems = append(problems, src.formatDiagnostic(d))
			}
		}
	}
	if n > maxProblems {
		problems = append(problems, fmt.Sprintf("… and %d more", n-maxProblems))
	}
	return problems, n
}

// findNew returns the problems of a file that are new.
func (d *Diagnoser) findNew(ctx context.Context, b *fileState, src *sourceReader) (list []lsp.Diagnostic) {
	text, _, err := d.Workspace.ReadFile(b.path, maxFile)
	if err != nil || bytes.Equal(text, b.text) {
		return nil
	}
	if !b.known {
		if d.loadProblems(ctx, b); !b.known {
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
		said := messageKey(p)
		if seen[said]++; seen[said] > b.problemCounts[said] && p.Severity <= lsp.Warning {
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
	return diagnosingTool{t, d}
}

type diagnosingTool struct {
	tool.Tool
	diagnoser *Diagnoser
}

// Prepare prepares the tool's call.
func (t diagnosingTool) Prepare(ctx context.Context, args json.RawMessage) (tool.Call, error) {
	c, err := t.Tool.Prepare(ctx, args)
	if err != nil {
		return nil, err
	}
	return diagnosingCall{c, t.diagnoser}, nil
}

type diagnosingCall struct {
	tool.Call
	diagnoser *Diagnoser
}

// Run runs the call and checks what it wrote.
func (c diagnosingCall) Run(ctx context.Context, out io.Writer) (tool.Result, error) {
	var paths []string
	for _, e := range c.Plan().Effects {
		if e.Kind == tool.Write {
			paths = append(paths, e.Target)
		}
	}
	edit := c.diagnoser.Snapshot(ctx, paths...)
	r, err := c.Call.Run(ctx, out)
	if err != nil || r.Failed {
		return r, err
	}
	if problems, n := edit.NewProblems(ctx); n > 0 {
		r.Value = diagnosedResult{r.Value, problems}
		r.Summary += ", " + tool.FormatCount(n, "new problem", "new problems")
	}
	return r, nil
}

// diagnosedResult marshals like its value, with diagnostics added.
type diagnosedResult struct {
	value    any
	problems []string
}

func (v diagnosedResult) MarshalJSON() ([]byte, error) {
	b, err := jsonx.Marshal(v.value)
	if err != nil || len(b) < 2 || b[0] != '{' {
		return b, err
	}
	more, err := jsonx.Marshal(struct {
		Diagnostics []string `json:"diagnostics"`
	}{v.problems})
	if err != nil || len(b) == 2 {
		return more, err
	}
	return append(append(b[:len(b)-1], ','), more[1:]...), nil
}
