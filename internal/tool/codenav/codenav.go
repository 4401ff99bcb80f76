//go:build unix

// Package codenav has the tools that ask language servers about code,
// and the wrapper that lets a writing tool report what it broke.
//
// Without a language server the tools say how to get one, and everything else
// works as if they did not exist. They read only files of the workspace: for a
// place elsewhere they return the path and the line, not the text.
package codenav

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"coder/internal/host/lsp"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed lsp.md
var groupDoc string

// All returns every tool of this package as one group.
func All(ws *workspace.Workspace, pool *lsp.Pool) tool.Group {
	return tool.Group{Name: "lsp", Doc: groupDoc, Members: []tool.Member{
		{Action: "definition", Tool: Definition(ws, pool)}, {Action: "references", Tool: References(ws, pool)},
		{Action: "hover", Tool: Hover(ws, pool)}, {Action: "diagnostics", Tool: Diagnostics(ws, pool)},
	}}
}

const (
	maxFile      = 4 << 20  // bytes of a file to read
	maxLineChars = 300      // characters of a source line to show
	maxText      = 48 << 10 // bytes of all lines in a result
	maxLocations = 200      // places in a result
	maxFiles     = 100      // files read to show their lines
)

// readPlan returns the plan of a call about a file.
func readPlan(ws *workspace.Workspace, path, title string) (tool.Plan, error) {
	at, err := ws.Locate(path)
	return tool.Plan{Title: title, Effects: []tool.Effect{{Kind: tool.Read, Target: at}}}, err
}

// sourceReader reads lines of workspace files, each file once.
type sourceReader struct {
	ws    *workspace.Workspace
	lines map[string][]string
}

// add adds the text of a file that was already read.
func (s *sourceReader) add(path string, text []byte) []string {
	if s.lines == nil {
		s.lines = make(map[string][]string)
	}
	s.lines[path] = splitLines(text)
	return s.lines[path]
}

// line returns line n of a file, from 0, or "" if it is unavailable.
func (s *sourceReader) line(path string, n int) string {
	lines, ok := s.lines[path]
	if !ok && len(s.lines) < maxFiles {
		text, _, _ := s.ws.ReadFile(path, maxFile) // refuses files outside
		lines = s.add(path, text)
	}
	if n < 0 || n >= len(lines) {
		return ""
	}
	return lines[n]
}

// formatLocation formats a location as "path:line:column", counted from 1 and in characters.
func (s *sourceReader) formatLocation(l lsp.Location) string {
	at := l.Range.Start
	column := at.Character
	if line := s.line(l.Path, at.Line); line != "" {
		column = lsp.RuneOffset(line, at.Character)
	}
	return fmt.Sprintf("%s:%d:%d", l.Path, at.Line+1, column+1)
}

// formatWithLine formats a location with its source line.
func (s *sourceReader) formatWithLine(l lsp.Location) string {
	if line := strings.TrimSpace(s.line(l.Path, l.Range.Start.Line)); line != "" {
		return s.formatLocation(l) + ": " + truncateLine(line)
	}
	return s.formatLocation(l)
}

// splitLines splits a text at its line ends.
func splitLines(text []byte) []string {
	lines := strings.Split(string(text), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// truncateLine shortens a long line, and makes it valid text.
func truncateLine(line string) string {
	line = strings.ToValidUTF8(line, "\ufffd")
	if utf8.RuneCountInString(line) <= maxLineChars {
		return line
	}
	return string([]rune(line)[:maxLineChars]) + "…"
}

// limitLines returns as many lines as fit in a result, and whether some are missing.
func limitLines(lines []string) (kept []string, truncated bool) {
	kept = []string{}
	size := 0
	for _, l := range lines {
		if size += len(l); len(kept) == maxLocations || size > maxText {
			return kept, true
		}
		kept = append(kept, l)
	}
	return kept, false
}
