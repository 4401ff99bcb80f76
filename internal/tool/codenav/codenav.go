//go:build unix

// Package codenav holds the tools that ask language servers about code, and the
// wrapper that lets a writing tool tell what it broke.
//
// Without a language server the tools say how to get one, and everything else
// works as if they were not there. They read only files of the workspace: of a
// place elsewhere they give the path and the line, not the text.
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

// All is every tool of this package, as one.
func All(ws *workspace.Workspace, pool *lsp.Pool) tool.Group {
	return tool.Group{Name: "lsp", Doc: groupDoc, Members: []tool.Member{
		{Action: "definition", Tool: Definition(ws, pool)}, {Action: "references", Tool: References(ws, pool)},
		{Action: "hover", Tool: Hover(ws, pool)}, {Action: "diagnostics", Tool: Diagnostics(ws, pool)},
	}}
}

const (
	maxFile  = 4 << 20  // bytes of a file that is looked at
	maxShown = 300      // characters of a source line that are shown
	maxText  = 48 << 10 // bytes of all lines of a result together
	maxList  = 200      // places in a result
	maxRead  = 100      // files that are read to show lines of them
)

// reading is the plan of a call about a file.
func reading(ws *workspace.Workspace, path, title string) (tool.Plan, error) {
	at, err := ws.Locate(path)
	return tool.Plan{Title: title, Effects: []tool.Effect{{Kind: tool.Read, Target: at}}}, err
}

// sources reads lines of files of the workspace, each file once.
type sources struct {
	ws    *workspace.Workspace
	lines map[string][]string
}

// add takes the text of a file that has been read already.
func (s *sources) add(path string, text []byte) []string {
	if s.lines == nil {
		s.lines = make(map[string][]string)
	}
	s.lines[path] = linesOf(text)
	return s.lines[path]
}

// line is line n of a file, from 0; "" if it cannot be had.
func (s *sources) line(path string, n int) string {
	lines, ok := s.lines[path]
	if !ok && len(s.lines) < maxRead {
		text, _, _ := s.ws.ReadFile(path, maxFile) // refuses what lies outside
		lines = s.add(path, text)
	}
	if n < 0 || n >= len(lines) {
		return ""
	}
	return lines[n]
}

// place is a location as "path:line:column", counted from 1 and in characters.
func (s *sources) place(l lsp.Location) string {
	at := l.Range.Start
	column := at.Character
	if line := s.line(l.Path, at.Line); line != "" {
		column = lsp.RunesAt(line, at.Character)
	}
	return fmt.Sprintf("%s:%d:%d", l.Path, at.Line+1, column+1)
}

// placeAndLine is a location with the source line that is there.
func (s *sources) placeAndLine(l lsp.Location) string {
	if line := strings.TrimSpace(s.line(l.Path, l.Range.Start.Line)); line != "" {
		return s.place(l) + ": " + cut(line)
	}
	return s.place(l)
}

// linesOf splits a text at its line ends.
func linesOf(text []byte) []string {
	lines := strings.Split(string(text), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// cut shortens a long line, and makes it text if it is not.
func cut(line string) string {
	line = strings.ToValidUTF8(line, "\ufffd")
	if utf8.RuneCountInString(line) <= maxShown {
		return line
	}
	return string([]rune(line)[:maxShown]) + "…"
}

// bounded is as many of the lines as a result can hold, and whether that is not
// all of them.
func bounded(lines []string) (kept []string, truncated bool) {
	kept = []string{}
	size := 0
	for _, l := range lines {
		if size += len(l); len(kept) == maxList || size > maxText {
			return kept, true
		}
		kept = append(kept, l)
	}
	return kept, false
}
