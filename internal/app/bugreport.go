package app

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"coder/internal/core/jsonx"
)

// ReportFile is a file in a bug report.
type ReportFile struct {
	Name, Description string
	Text              []byte
}

// BugReport collects files that help to find a bug: versions, findings and settings, and
// a session if one is named. Keys are masked as in an export, and the home folder is ~.
func (a *Workspace) BugReport(ctx context.Context, findings []Finding, session string) ([]ReportFile, error) {
	masks := a.newConcealer()
	home := strings.TrimRight(a.Env.Getenv("HOME"), "/")
	file := func(name, about string, text []byte) ReportFile {
		if strings.HasSuffix(name, ".json") {
			text = masks.JSON(text)
		} else {
			text = []byte(masks.Text(string(text)))
		}
		if home != "" {
			text = bytes.ReplaceAll(text, []byte(home), []byte("~"))
		}
		return ReportFile{name, about, text}
	}
	var settings strings.Builder
	for _, r := range a.Report.Rows() {
		fmt.Fprintf(&settings, "%s = %s  (%s)\n", r.Key, r.Value, r.Origin.DisplayText())
	}
	facts := map[string]any{"build": ReadBuild(), "installed": FindInstallation(a.Env), "term": a.Env.Getenv("TERM"),
		"lang": a.Env.Getenv("LANG"), "shell": string(a.shell)}
	files := []ReportFile{
		file("versions.json", "program, system and terminal", append(jsonx.MustMarshal(facts), '\n')),
		file("doctor.json", "the results of coder doctor", append(jsonx.MustMarshal(findings), '\n')),
		file("settings.txt", "settings and their sources", []byte(settings.String())),
	}
	if session == "" {
		return files, nil
	}
	id, err := a.Store().CheckSession(ctx, session)
	if err != nil {
		return nil, err
	}
	for _, form := range []struct{ name, format, about string }{
		{"session.md", "md", "the session, to read"}, {"session.json", "json", "the session, for programs"},
	} {
		var b bytes.Buffer
		if err := a.Store().Export(ctx, &b, id, form.format); err != nil {
			return nil, err
		}
		files = append(files, file(form.name, form.about, b.Bytes()))
	}
	return files, nil
}
