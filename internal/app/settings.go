package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"coder/internal/host/lsp"
)

// checkUnbuilt refuses settings that would do nothing where somebody may rely
// on what they do, and says so of others.
func (h *house) checkUnbuilt() error {
	if names := slices.Sorted(maps.Keys(h.conf.Hooks)); len(names) > 0 {
		return configf("hooks are not built yet, so nothing would be run or held back by them: remove hooks.%s (%s)",
			strings.Join(names, ", hooks."), h.report.Origin("hooks."+names[0]))
	}
	if names := slices.Sorted(maps.Keys(h.conf.MCPServers)); len(names) > 0 {
		h.warn(fmt.Sprintf("MCP servers are not built yet, so none is started: mcpServers.%s", strings.Join(names, ", mcpServers.")))
	}
	return nil
}

// readServers reads the settings of language servers.
func (h *house) readServers() error {
	for _, name := range slices.Sorted(maps.Keys(h.conf.LSP.Servers)) {
		k, err := lsp.Configured(name, h.conf.LSP.Servers[name])
		if err != nil {
			return configf("lsp.servers: %v (%s)", err, h.report.Origin("lsp.servers."+name))
		}
		h.servers = append(h.servers, k)
	}
	return nil
}
