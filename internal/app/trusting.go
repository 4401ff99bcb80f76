package app

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/hooks"
	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/policy/trust"
	"coder/internal/tool/mcp"
)

// TrustPreview is what trust in a folder lets its settings do.
type TrustPreview struct {
	Hooks    []hooks.Hook
	Servers  []mcp.Server
	Settings []config.Row // the other settings that need trust
	Trust    func() error // trusts the folder with the content just read
}

// PreviewTrust reads what a folder's settings would do with trust.
// After an error they are unusable, and there is nothing to trust.
func PreviewTrust(env Env, o Options) (e TrustPreview, err error) {
	hash, unread := "", error(nil) // hash first: later changes must not be trusted
	s, err := loadSettings(env, o, func(_ trust.Registry, root string) (trust.State, error) {
		hash, unread = trust.Hash(root)
		return trust.Trusted, nil
	})
	switch {
	case err != nil:
		return e, err
	case unread != nil:
		return e, inputErrorf("%v", unread)
	}
	book, root, file := s.Trust, s.Root, filepath.Join(s.Project, ".coder", "config.json")
	e.Trust = func() error { return book.TrustAs(root, hash) }
	a, err := New(env, o, s, func(string) {})
	if err != nil {
		return e, err
	}
	for _, h := range a.hooks {
		if !h.FromUser && h.Plugin == "" {
			e.Hooks = append(e.Hooks, h)
		}
	}
	for _, one := range a.mcpServers {
		if one.FromProject {
			e.Servers = append(e.Servers, one)
		}
	}
	untrusted, err := loadSettings(env, o, func(trust.Registry, string) (trust.State, error) { return trust.Unknown, nil })
	if err != nil {
		return e, err
	}
	holds := untrusted.Report.Rows()
	for _, row := range s.Report.Rows() {
		runs := strings.HasPrefix(row.Key, "hooks.") || strings.HasPrefix(row.Key, "mcpServers.")
		if row.Origin.Source == file && !runs && !slices.Contains(holds, row) {
			e.Settings = append(e.Settings, row)
		}
	}
	return e, nil
}

// Rows returns a complete description, one line per item.
func (e TrustPreview) Rows() [][]display.Cell {
	rows := DescribeRuns(e.Hooks, e.Servers)
	if len(e.Settings) > 0 {
		rows = append(rows, display.TextCells("settings that override yours:"))
	}
	for _, row := range e.Settings {
		rows = append(rows, display.DataCells("  "+sanitize.Line(row.Key+" = "+row.Value, 0)))
	}
	return rows
}

// DescribeRuns returns a complete description of hooks and servers, one line each.
func DescribeRuns(list []hooks.Hook, servers []mcp.Server) (rows [][]display.Cell) {
	whole := func(s string) string { return sanitize.Line(s, 0) }
	if len(list) > 0 {
		rows = append(rows, display.TextCells("hooks that run automatically:"))
	}
	for _, h := range list {
		on := string(h.Event)
		if h.Matcher != "" {
			on += " " + h.Matcher
		}
		rows = append(rows, display.DataCells("  "+whole(on)+": "+
			whole(strings.Join(append([]string{h.Command}, h.Args...), " "))))
	}
	if len(servers) > 0 {
		rows = append(rows, display.TextCells("MCP servers that run with a session:"))
	}
	for _, s := range servers {
		line := "  " + singleLine(s.Name) + ": " + whole(s.DisplayAddress())
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			line += " " + whole(name+"="+s.Env[name])
		}
		for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
			line += " " + whole(name+": "+s.Headers[name])
		}
		rows = append(rows, display.DataCells(line))
	}
	return rows
}

// previewTrust is [PreviewTrust] for this workspace.
func (a *Site) previewTrust() (rows [][]display.Cell, give func() error, err error) {
	e, err := PreviewTrust(a.Env, a.Options)
	return e.Rows(), e.Trust, err
}

// showTrustHint says how to apply project settings that were ignored.
func (a *Site) showTrustHint() {
	if !a.IgnoresProject() {
		return
	}
	if a.Trusted == trust.Changed {
		a.warn("this folder was trusted, but its settings have changed; coder trust shows what they do, and trusts them as they are now")
		return
	}
	a.warn("coder trust shows what these settings do, and trusts them as they are now")
}

// CanTrust reports whether the folder is not trusted and trust would only allow checks.
func (a *Site) CanTrust() bool { return !a.isTrusted() && !a.IgnoresProject() }

// IgnoresProject reports whether project settings are ignored because the project is not trusted with them.
func (a *Site) IgnoresProject() bool {
	return a.Trusted != trust.Trusted && !a.Options.IgnoreConfig &&
		(len(a.Report.Warnings) > 0 || slices.Contains(trust.ExistingFiles(a.Project), mcpFile))
}

// isTrusted reports whether the folder was trusted at the start and the user has not
// revoked that, or is trusted by now. It must be called before the user can revoke it.
func (a *Site) isTrusted() bool {
	now, err := a.Trust.StateOf(a.Root)
	a.initialTrustOnce.Do(func() { a.initiallyTrusted = err == nil && now == trust.Trusted })
	takenBack := a.initiallyTrusted && err == nil && now == trust.Unknown
	return a.Trusted == trust.Trusted && !takenBack || err == nil && now == trust.Trusted
}
