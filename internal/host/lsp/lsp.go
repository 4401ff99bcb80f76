// Package lsp asks language servers about code: what is wrong with it, where a
// thing is defined and used, what it is.
//
// What it promises:
//
//  1. Servers are found and started when first needed, one for each kind and
//     project, and never because a project says so: only those this package
//     knows by name, found on the PATH outside the workspace, and those the
//     user gave. They run as [Options] say: where they may, within bounds, with
//     what of the project would choose programs switched off. The known ones
//     are told not to run what the project brings, such as build scripts.
//  2. No server can hold a call up: whatever it does or fails to do, every
//     call ends by its own time limit or with its context. What a server
//     writes is bounded in size before it is kept. That code has nothing wrong
//     is never concluded from silence or from a first, empty list.
//  3. A server that dies is started again, a few times and less and less
//     eagerly. One that is not used is ended.
//  4. When [Pool.Close] returns, every server is gone with the processes of its
//     group, and no goroutine is left. If we are killed, the system kills the
//     servers.
//
// Positions are those of the protocol, see [Position].
package lsp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf16"

	"coder/internal/core/clip"
)

// ErrClosed is the error of using a pool that was closed.
var ErrClosed = errors.New("language servers are closed")

// ErrRefused is the error of a server that does not want to answer: often there
// is nothing at the place it was asked about.
var ErrRefused = errors.New("refused by the language server")

// errGone is the error of a call whose server ended before it answered.
var errGone = errors.New("language server exited")

// errSlow is the error of a call whose server takes too long.
var errSlow = errors.New("did not answer")

// NoServerError says that there is no language server for a file, and what to
// do about it.
type NoServerError struct {
	Language string   // "" if we know no server for such files
	Path     string   // the file
	Install  []string // ways to get a server
	Refused  []string // programs that are there, but inside the workspace
}

func (e *NoServerError) Error() string {
	switch {
	case e.Language == "":
		return fmt.Sprintf("no known language server for %s", e.Path)
	case len(e.Refused) > 0:
		return fmt.Sprintf("the language server %s is inside the workspace and runs only if the user's settings name it (lsp.servers)", e.Refused[0])
	case len(e.Install) == 0:
		return fmt.Sprintf("the language server for %s is not installed", e.Language)
	}
	return fmt.Sprintf("no language server for %s is installed; to install one: %s", e.Language, strings.Join(e.Install, ", or: "))
}

// Position is a place in a text: lines counted from 0, and in the line UTF-16
// code units counted from 0. [UnitsAt] and [RunesAt] turn characters into units
// and back.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Range is a part of a text; End is just behind it.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Location is a part of a file. Path is slash-separated and relative to the
// workspace, or absolute if the file lies elsewhere.
type Location struct {
	Path  string
	Range Range
}

// Severity is how bad a diagnostic is; the smaller the worse.
type Severity int

// The severities. A server that gives none means an error.
const (
	Error Severity = iota + 1
	Warning
	Information
	Hint
)

func (s Severity) String() string {
	switch s {
	case Warning:
		return "warning"
	case Information:
		return "info"
	case Hint:
		return "hint"
	}
	return "error"
}

// Diagnostic is something a server has to say about a part of a file.
type Diagnostic struct {
	Location
	Severity Severity
	Code     string // the server's name for this sort of thing; may be empty
	Source   string // which part of the server says so; may be empty
	Message  string
}

// Report is what a server says about a file or a project.
type Report struct {
	Server      string
	Diagnostics []Diagnostic // by place
	// Pending says that the server had not finished when its time was up, or
	// that nobody can tell. Without diagnostics nothing is known then.
	Pending bool
	// Note says what they leave out, or why they are not known; may be empty.
	Note string
}

// wireDiagnostic is a diagnostic as servers send it.
type wireDiagnostic struct {
	Range    Range           `json:"range"`
	Severity Severity        `json:"severity"`
	Code     json.RawMessage `json:"code"`
	Source   string          `json:"source"`
	Message  string          `json:"message"`
}

// Bounds of what is kept of one file's diagnostics.
const (
	maxPerFile = 500
	maxMessage = 4000 // bytes
)

// diagnostics turns what a server sent about the file path into our form.
func diagnostics(path string, sent []wireDiagnostic) []Diagnostic {
	list := make([]Diagnostic, 0, min(len(sent), maxPerFile))
	for _, w := range sent[:min(len(sent), maxPerFile)] {
		d := Diagnostic{
			Location: Location{path, w.Range}, Severity: w.Severity,
			Code: text(w.Code), Source: w.Source, Message: clip.Text(w.Message, maxMessage),
		}
		if d.Severity < Error || d.Severity > Hint {
			d.Severity = Error
		}
		list = append(list, d)
	}
	return list
}

// text is a string or number as people write it.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
	}
	return clip.Text(s, maxMessage)
}

func uriOf(path string) string {
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// pathOf is the absolute, clean path a file URI stands for; "" if it stands for
// none. Servers escape more or less than we do, so URIs are compared by path.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
		return ""
	}
	return filepath.Clean(u.Path)
}

// nameOf is how we speak of an absolute path: relative to root if it is below.
func nameOf(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// UnitsAt is how many UTF-16 code units the first n characters of line take. A
// line that is shorter ends the count.
func UnitsAt(line string, n int) (units int) {
	for _, r := range line {
		if n--; n < 0 {
			break
		}
		units += utf16.RuneLen(r)
	}
	return units
}

// RunesAt is how many characters stand before the given UTF-16 code unit of
// line. A unit in the middle of a character counts as its beginning, one beyond
// the line as its end.
func RunesAt(line string, units int) (n int) {
	for _, r := range line {
		if units -= utf16.RuneLen(r); units < 0 {
			break
		}
		n++
	}
	return n
}
