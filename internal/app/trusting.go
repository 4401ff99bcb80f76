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

// Entrusted is what trust in a folder lets its settings do.
type Entrusted struct {
	Hooks    []hooks.Hook
	Servers  []mcp.Server
	Settings []config.Row // the other settings that need trust
	Give     func() error // trusts the folder with the content just read
}

// Entrusts reads what a folder's settings would do with trust.
// After an error they are unusable, and there is nothing to trust.
func Entrusts(env Env, o Options) (e Entrusted, err error) {
	hash, unread := "", error(nil) // hash first: later changes must not be trusted
	s, err := load(env, o, func(_ trust.Book, root string) (trust.State, error) {
		hash, unread = trust.Hash(root)
		return trust.Trusted, nil
	})
	switch {
	case err != nil:
		return e, err
	case unread != nil:
		return e, inputf("%v", unread)
	}
	book, root, file := s.Trust, s.Root, filepath.Join(s.Project, ".coder", "config.json")
	e.Give = func() error { return book.GiveAs(root, hash) }
	a, err := New(env, o, s, func(string) {})
	if err != nil {
		return e, err
	}
	for _, h := range a.hooks {
		if !h.Own && h.Plugin == "" {
			e.Hooks = append(e.Hooks, h)
		}
	}
	for _, one := range a.mcpServers {
		if one.Project {
			e.Servers = append(e.Servers, one)
		}
	}
	untrusted, err := load(env, o, func(trust.Book, string) (trust.State, error) { return trust.Unknown, nil })
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
func (e Entrusted) Rows() [][]display.Cell {
	rows := Runs(e.Hooks, e.Servers)
	if len(e.Settings) > 0 {
		rows = append(rows, display.Words("settings that override yours:"))
	}
	for _, row := range e.Settings {
		rows = append(rows, display.Data("  "+sanitize.Line(row.Key+" = "+row.Value, 0)))
	}
	return rows
}

// Runs returns a complete description of hooks and servers, one line each.
func Runs(list []hooks.Hook, servers []mcp.Server) (rows [][]display.Cell) {
	whole := func(s string) string { return sanitize.Line(s, 0) }
	if len(list) > 0 {
		rows = append(rows, display.Words("hooks that run automatically:"))
	}
	for _, h := range list {
		on := string(h.Event)
		if h.Matcher != "" {
			on += " " + h.Matcher
		}
		rows = append(rows, display.Data("  "+whole(on)+": "+whole(strings.Join(append([]string{h.Command}, h.Args...), " "))))
	}
	if len(servers) > 0 {
		rows = append(rows, display.Words("MCP servers that run with a session:"))
	}
	for _, s := range servers {
		line := "  " + oneLine(s.Name) + ": " + whole(s.Where())
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			line += " " + whole(name+"="+s.Env[name])
		}
		for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
			line += " " + whole(name+": "+s.Headers[name])
		}
		rows = append(rows, display.Data(line))
	}
	return rows
}

// entrusts is [Entrusts] for this workspace.
func (a *Site) entrusts() (rows [][]display.Cell, give func() error, err error) {
	e, err := Entrusts(a.Env, a.Options)
	return e.Rows(), e.Give, err
}

// tellTrust says how to apply project settings that were ignored.
func (a *Site) tellTrust() {
	if !a.PassesOver() {
		return
	}
	if a.Trusted == trust.Changed {
		a.warn("this folder was trusted, but its settings have changed; coder trust shows what they do, and trusts them as they are now")
		return
	}
	a.warn("coder trust shows what these settings do, and trusts them as they are now")
}

// Trustable reports whether the folder is not trusted and trust would only allow checks.
func (a *Site) Trustable() bool { return !a.trusts() && !a.PassesOver() }

// PassesOver reports whether project settings are ignored because the project is not trusted with them.
func (a *Site) PassesOver() bool {
	return a.Trusted != trust.Trusted && !a.Options.Bare && (len(a.Report.Warnings) > 0 || slices.Contains(trust.Settings(a.Project), mcpFile))
}

// trusts reports whether the folder was trusted at the start and the user has not
// revoked that, or is trusted by now. It must be called before the user can revoke it.
func (a *Site) trusts() bool {
	now, err := a.Trust.Of(a.Root)
	a.noted.Do(func() { a.inBook = err == nil && now == trust.Trusted })
	takenBack := a.inBook && err == nil && now == trust.Unknown
	return a.Trusted == trust.Trusted && !takenBack || err == nil && now == trust.Trusted
}
