//go:build unix

package codenav

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"coder/internal/host/lsp"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed diagnostics.md
var diagnosticsDoc string

type diagnosticsArgs struct {
	Path string `json:"path,omitzero" also:"file_path file filename dir" doc:"file or directory; all files if not given"`
}

type diagnosticsResult struct {
	OK          bool     `json:"ok"`
	Server      string   `json:"server"`
	Diagnostics []string `json:"diagnostics"`
	Count       int      `json:"count"`
	Truncated   bool     `json:"truncated"`
	Pending     bool     `json:"pending,omitzero"`
	Note        string   `json:"note,omitzero"`
}

// Diagnostics returns the tool that reports problems in code.
func Diagnostics(ws *workspace.Workspace, pool *lsp.Pool) tool.Tool {
	return tool.Func[diagnosticsArgs]{
		Name: "lsp_diagnostics", Doc: diagnosticsDoc,
		Aliases: []tool.Alias{{Name: "diagnostics"}, {Name: "get_diagnostics"}},
		Plan: func(_ context.Context, a diagnosticsArgs) (tool.Plan, error) {
			return readPlan(ws, cmp.Or(a.Path, "."), cmp.Or(a.Path, "."))
		},
		Do: func(ctx context.Context, a diagnosticsArgs, _ io.Writer) (tool.Result, error) {
			name, err := ws.Locate(cmp.Or(a.Path, "."))
			if err != nil {
				return tool.Result{}, err
			}
			info, err := ws.Stat(name)
			if err != nil {
				return tool.Result{}, err
			}
			var r lsp.Report
			if info.IsDir() { // everything that the servers know below it
				r, err = pool.Survey(ctx)
				r.Diagnostics = slices.DeleteFunc(r.Diagnostics, func(d lsp.Diagnostic) bool {
					return name != "." && !strings.HasPrefix(d.Path, name+"/")
				})
			} else {
				var text []byte
				if text, _, err = ws.ReadFile(name, maxFile); err == nil {
					r, err = pool.Diagnose(ctx, name, text)
				}
			}
			if err != nil {
				return tool.Result{}, err
			}
			return diagnosticsReport(ws, r), nil
		},
	}
}

// diagnosticsReport returns a report for the model: the worst first, without hints.
func diagnosticsReport(ws *workspace.Workspace, r lsp.Report) tool.Result {
	list := slices.DeleteFunc(slices.Clone(r.Diagnostics), func(d lsp.Diagnostic) bool { return d.Severity == lsp.Hint })
	slices.SortStableFunc(list, func(a, b lsp.Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) })
	src := &sourceReader{ws: ws}
	var lines []string
	for _, d := range list[:min(len(list), maxLocations+1)] {
		lines = append(lines, src.formatDiagnostic(d))
	}
	v := diagnosticsResult{OK: true, Server: r.Server, Count: len(list), Pending: r.Pending, Note: r.Note}
	v.Diagnostics, v.Truncated = limitLines(lines)
	if r.Pending && len(list) == 0 {
		v.Note = strings.TrimSuffix(unknownCount+": "+r.Note, ": ")
	}
	return tool.Result{Value: v, Summary: countProblems(list, r)}
}

// unknownCount replaces the number of problems when it is unknown.
const unknownCount = "not known yet: that nothing is listed does not mean that nothing is wrong"

// maxMessage is how many characters of a message are shown.
const maxMessage = 1000

// formatDiagnostic formats a diagnostic with its source line.
func (s *sourceReader) formatDiagnostic(d lsp.Diagnostic) string {
	message := strings.TrimSpace(d.Message)
	if r := []rune(message); len(r) > maxMessage {
		message = string(r[:maxMessage]) + "…"
	}
	words := fmt.Sprintf("%s: %s: %s", s.formatLocation(d.Location), d.Severity, strings.ReplaceAll(message, "\n", "\n  "))
	if from := strings.TrimSpace(d.Source + " " + d.Code); from != "" {
		words += " (" + truncateLine(from) + ")"
	}
	if line := strings.TrimSpace(s.line(d.Path, d.Range.Start.Line)); line != "" {
		words += "\n    " + truncateLine(line)
	}
	return words
}

// countProblems returns the number of problems by severity, and says that there are none only if that is certain.
func countProblems(list []lsp.Diagnostic, r lsp.Report) string {
	n := make(map[lsp.Severity]int)
	for _, d := range list {
		n[d.Severity]++
	}
	errors, warnings := n[lsp.Error], n[lsp.Warning]
	var words []string
	for _, w := range []struct {
		n     int
		thing string
	}{{errors, "error"}, {warnings, "warning"}, {len(list) - errors - warnings, "remark"}} {
		if w.n > 0 {
			words = append(words, tool.FormatCount(w.n, w.thing, w.thing+"s"))
		}
	}
	switch {
	case r.Pending && len(words) == 0:
		return "not known yet"
	case r.Pending:
		words = append(words, "the server has not finished")
	case len(words) == 0 && r.Note != "":
		return "nothing found"
	case len(words) == 0:
		return "no problems"
	}
	return strings.Join(words, ", ")
}
