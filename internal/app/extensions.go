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
	mcpLeft    []mcp.Status // skipped servers
	plugins    []usedPlugin
	telemetry  telemetry.Settings
}

func (a *Extensions) read() error {
	return errors.Join(a.readServers(), a.readHooks(), a.readPlugins(), a.readMCP())
}

// concealer returns the concealer for everything shown and saved: it masks keys from the settings
// and the environment, keys that commands will print, and text that looks like a key.
func (a *Extensions) concealer() *secret.Concealer {
	return secret.Conceal(slices.Concat(a.Report.Secrets(a.Env.Environ), secret.Values(a.Env.Environ), a.mcpSecrets(), a.telemetrySecrets()))
}

// readServers reads the settings of language servers.
func (a *Extensions) readServers() error {
	for _, name := range slices.Sorted(maps.Keys(a.Config.LSP.Servers)) {
		k, err := lsp.Configured(name, a.Config.LSP.Servers[name])
		if err != nil {
			return configf("lsp.servers: %v (%s)", err, a.Report.Origin(config.Entry("lsp.servers", name)))
		}
		a.servers = append(a.servers, k)
	}
	return nil
}

// readHooks reads the commands to run on events: the user's, then a trusted project's.
func (a *Extensions) readHooks() error {
	a.hooks = slices.Clone(a.Options.Driver.Hooks)
	for _, name := range slices.Sorted(maps.Keys(a.Config.Hooks)) {
		for _, part := range a.Report.Parts[config.Entry("hooks", name)] {
			list, skipped, err := hooks.Read(map[string]json.RawMessage{name: part.Value}, hooks.Source{Own: !part.Project})
			if err != nil {
				return configf("%v (%s)", err, a.Report.Origin(config.Entry("hooks", name)))
			}
			for _, s := range skipped {
				a.warn(s)
			}
			a.hooks = append(a.hooks, list...)
		}
	}
	return nil
}
