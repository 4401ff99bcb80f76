// Package lsp queries language servers about code: diagnostics, definitions, references and hover text.
//
// It guarantees:
//
//  1. Servers start when first needed, one for each kind and project, and never
//     because a project says so: only those this package knows by name, found on
//     the PATH outside the workspace, and those the user configured. They run as
//     [Options] say: confined where possible, with project settings that would
//     choose programs switched off. The known ones are told not to run
//     the project's code, such as build scripts.
//  2. No server can block a call: every call ends by its own time limit or
//     with its context. Server output is limited in size before it is stored.
//     Silence or a first, empty list never counts as proof that code is correct.
//  3. A server that dies is restarted a few times, with growing delays.
//     An idle server is stopped.
//  4. When [Pool.Close] returns, every server is gone with the processes of its
//     group, and no goroutine is left. If coder is killed, the system kills the
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

// ErrClosed reports the use of a closed pool.
var ErrClosed = errors.New("language servers are closed")

// ErrRefused reports that the server refused to answer, often because there is nothing at the given
// position.
var ErrRefused = errors.New("refused by the language server")

// errServerExited reports that the server ended before it answered.
var errServerExited = errors.New("language server exited")

// errTimeout reports that the server took too long.
var errTimeout = errors.New("did not answer")

// NoServerError reports that no language server is available for a file, and how to get one.
type NoServerError struct {
	Language string   // "" if we know no server for such files
	Path     string   // the requested file
	Install  []string // how to install a server
	Refused  []string // programs found inside the workspace
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
	return fmt.Sprintf("no language server for %s is installed; to install one: %s", e.Language,
		strings.Join(e.Install, ", or: "))
}

// Position is a place in a text: a line, and UTF-16 code units in the line, both counted from 0.
// [UTF16Offset] and [RuneOffset] convert between characters and units.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Range is a part of a text; End is exclusive.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Location is a part of a file. Path is slash-separated and relative to the workspace, or absolute if
// the file is elsewhere.
type Location struct {
	Path  string
	Range Range
}

// Severity is the severity of a diagnostic; smaller is worse.
type Severity int

// The severities. A missing severity means an error.
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

// Diagnostic is a server's message about a part of a file.
type Diagnostic struct {
	Location
	Severity Severity
	Code     string // the server's code for this kind of message; may be empty
	Source   string // the part of the server that reports it; may be empty
	Message  string
}

// Report holds the diagnostics of a file or a project.
type Report struct {
	Server      string
	Diagnostics []Diagnostic // sorted by position
	// Pending reports that the server did not finish in time, or that this is unknown. Without diagnostics,
	// the state of the code is then unknown.
	Pending bool
	// Note says what the diagnostics omit, or why they are unknown; may be empty.
	Note string
}

// wireDiagnostic is a diagnostic in the protocol's form.
type wireDiagnostic struct {
	Range    Range           `json:"range"`
	Severity Severity        `json:"severity"`
	Code     json.RawMessage `json:"code"`
	Source   string          `json:"source"`
	Message  string          `json:"message"`
}

// Limits on one file's diagnostics.
const (
	maxPerFile = 500
	maxMessage = 4000 // bytes
)

// convertDiagnostics converts a server's diagnostics of the file path.
func convertDiagnostics(path string, sent []wireDiagnostic) []Diagnostic {
	list := make([]Diagnostic, 0, min(len(sent), maxPerFile))
	for _, w := range sent[:min(len(sent), maxPerFile)] {
		d := Diagnostic{
			Location: Location{path, w.Range}, Severity: w.Severity,
			Code: rawText(w.Code), Source: w.Source, Message: clip.Truncate(w.Message, maxMessage),
		}
		if d.Severity < Error || d.Severity > Hint {
			d.Severity = Error
		}
		list = append(list, d)
	}
	return list
}

// rawText returns a JSON string or number as plain text.
func rawText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
	}
	return clip.Truncate(s, maxMessage)
}

func pathToURI(path string) string {
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// uriToPath returns the absolute, clean path of a file URI, or "". Servers escape URIs differently, so
// compare paths.
func uriToPath(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
		return ""
	}
	return filepath.Clean(u.Path)
}

// displayName returns the display name of an absolute path: relative to root if below it.
func displayName(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// UTF16Offset returns how many UTF-16 code units the first n characters of line take, or all of a shorter
// line.
func UTF16Offset(line string, n int) (units int) {
	for _, r := range line {
		if n--; n < 0 {
			break
		}
		units += utf16.RuneLen(r)
	}
	return units
}

// RuneOffset returns how many characters precede the given UTF-16 code unit of line. A unit within a
// character counts as its start, one beyond the line as its end.
func RuneOffset(line string, units int) (n int) {
	for _, r := range line {
		if units -= utf16.RuneLen(r); units < 0 {
			break
		}
		n++
	}
	return n
}
