package app

import (
	"encoding/json"
	"maps"
	"slices"

	"coder/internal/agent/hooks"
	"coder/internal/config"
)

// readHooks reads the commands to run on events: the user's, then a trusted project's.
func (a *App) readHooks() error {
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
