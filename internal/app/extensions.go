package app

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"coder/internal/agent/hooks"
	"coder/internal/config"
	"coder/internal/core/secret"
	"coder/internal/host/lsp"
	"coder/internal/report/telemetry"
	"coder/internal/tool/mcp"
)

// Extensions are what users and projects add to coder: hooks, plugins, MCP servers and language servers.
type Extensions struct {
	*Site
	hooks      []hooks.Hook // commands on events, from the settings
	servers    []lsp.Kind   // language servers from the settings
	mcpServers []mcp.Server
	mcpSkipped []mcp.Status // skipped servers
	plugins    []loadedPlugin
	telemetry  telemetry.Settings
}

func (a *Extensions) read() error {
	return errors.Join(a.readLSPServers(), a.readHooks(), a.readPlugins(), a.readMCP())
}

// concealer returns the concealer for everything shown and saved: it masks keys from the settings
// and the environment, keys that commands will print, and text that looks like a key.
func (a *Extensions) concealer() *secret.Concealer {
	return secret.NewConcealer(slices.Concat(a.Report.Secrets(a.Env.Environ), secret.EnvSecrets(a.Env.Environ),
		a.mcpSecrets(), a.telemetrySecrets()))
}

// readLSPServers reads the settings of language servers.
func (a *Extensions) readLSPServers() error {
	for _, name := range slices.Sorted(maps.Keys(a.Config.LSP.Servers)) {
		k, err := lsp.ParseKind(name, a.Config.LSP.Servers[name])
		if err != nil {
			return configErrorf("lsp.servers: %v (%s)", err, a.Report.Origin(config.EntryKey("lsp.servers", name)))
		}
		a.servers = append(a.servers, k)
	}
	return nil
}

// readHooks reads the commands to run on events: the user's, then a trusted project's.
func (a *Extensions) readHooks() error {
	a.hooks = slices.Clone(a.Options.Driver.Hooks)
	for _, name := range slices.Sorted(maps.Keys(a.Config.Hooks)) {
		for _, part := range a.Report.Parts[config.EntryKey("hooks", name)] {
			list, skipped, err := hooks.Parse(map[string]json.RawMessage{name: part.Value},
				hooks.Source{FromUser: !part.Project})
			if err != nil {
				return configErrorf("%v (%s)", err, a.Report.Origin(config.EntryKey("hooks", name)))
			}
			for _, s := range skipped {
				a.warn(s)
			}
			a.hooks = append(a.hooks, list...)
		}
	}
	return nil
}
