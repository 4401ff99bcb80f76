package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"coder/internal/host/repofile"
)

// firstNative is the first version of TypeScript that is a language server
// itself. Those before it bring a tsserver, which needs one to speak for it.
const firstNative = 7

// servesItself reports whether a program tsc belongs to a TypeScript that is a
// language server. That is read, not tried.
func servesItself(_ Options, program string) bool {
	var pack struct{ Name, Version string }
	text, err := repofile.Own(filepath.Join(packageOf(program), "package.json"), maxSettings)
	if err != nil || json.Unmarshal(text, &pack) != nil {
		return false
	}
	major, _, _ := strings.Cut(pack.Version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && pack.Name == "typescript" && n >= firstNative
}

// packageOf is the folder of the package whose bin folder holds a program.
func packageOf(program string) string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return program
	}
	return filepath.Dir(filepath.Dir(real))
}

// hasTsserver reports whether there is a tsserver to speak for.
func hasTsserver(o Options, _ string) bool { return o.tsserver() != "" }

// tsserver is the library of the person's tsserver, "" if there is none. The
// project's is code of the project.
func (o Options) tsserver() string {
	bin, _ := o.find("tsserver")
	if bin == "" {
		return ""
	}
	lib := filepath.Join(packageOf(bin), "lib", "tsserver.js")
	if _, err := os.Stat(lib); err != nil {
		return ""
	}
	return lib
}

// typescriptOptions name the TypeScript to use, so that the server does not look
// for the project's. While that loads, answers are waited for rather than
// guessed; packages of types are not fetched.
func typescriptOptions(o Options) any {
	return map[string]any{
		"disableAutomaticTypingAcquisition": true,
		"tsserver":                          map[string]any{"path": o.tsserver(), "useSyntaxServer": "never"},
	}
}

// tsDiagnostic is a diagnostic as tsserver sends it, counted from 1.
type tsDiagnostic struct {
	Start, End tsPosition
	Text       string
	Code       json.RawMessage
	Category   string
}

type tsPosition struct{ Line, Offset int }

func (p tsPosition) position() Position { return Position{max(0, p.Line-1), max(0, p.Offset-1)} }

// askTsserver has tsserver itself asked what is wrong with a document. What it
// tells unasked comes piece by piece, with nothing to show which is the last.
func askTsserver(ctx context.Context, s *server, path string) (list []Diagnostic, err error) {
	for _, about := range []string{"syntacticDiagnosticsSync", "semanticDiagnosticsSync"} {
		var reply struct {
			Type string         `json:"type"`
			Body []tsDiagnostic `json:"body"`
		}
		ask := map[string]any{"command": "typescript.tsserverRequest", "arguments": []any{about, map[string]any{"file": uriOf(path)}}}
		if err := s.request(ctx, requestLimit, "workspace/executeCommand", ask, &reply); err != nil {
			return list, err
		}
		if reply.Type != "response" || reply.Body == nil {
			return list, errors.New("tsserver did not answer")
		}
		sent := make([]wireDiagnostic, len(reply.Body))
		for i, d := range reply.Body {
			sent[i] = wireDiagnostic{Range{d.Start.position(), d.End.position()}, cmp.Or(severities[d.Category], Error), d.Code, "typescript", d.Text}
		}
		list = append(list, diagnostics(nameOf(s.top, path), sent)...)
	}
	return list, nil
}

// severities are those of tsserver's categories; any other is an error.
var severities = map[string]Severity{"warning": Warning, "suggestion": Hint, "message": Information}
