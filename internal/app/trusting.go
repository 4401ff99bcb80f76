package app

import (
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/hooks"
	"coder/internal/config"
	"coder/internal/policy/trust"
	"coder/internal/tool/mcp"
)

// Entrusted is what trust in a folder lets its settings do.
type Entrusted struct {
	Hooks    []hooks.Hook
	Servers  []mcp.Server
	Settings []config.Row // the others that it has
	Give     func() error // trusts the folder with what was read of it
}

// Entrusts reads what the settings of a folder would do if it were trusted. With an
// error they cannot be used, and there is nothing to trust.
func Entrusts(env Env, o Options) (e Entrusted, err error) {
	hash, unread := "", error(nil) // first: what changes meanwhile is not what is trusted
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
	for _, row := range s.Report.Rows() {
		runs := strings.HasPrefix(row.Key, "hooks.") || strings.HasPrefix(row.Key, "mcpServers.")
		if row.Origin.Source == file && !runs {
			e.Settings = append(e.Settings, row)
		}
	}
	return e, nil
}

// tellTrust says, where settings of the project were passed over, what would make
// them hold.
func (a *App) tellTrust() {
	if a.Trusted == trust.Trusted || len(a.Report.Warnings) == 0 && !slices.Contains(trust.Settings(a.Project), mcpFile) {
		return
	}
	if a.Trusted == trust.Changed {
		a.warn("this folder was trusted and its settings changed since; coder trust shows what they would do, and trusts them as they are now")
		return
	}
	a.warn("coder trust shows what these settings would do, and trusts them as they are now")
}
