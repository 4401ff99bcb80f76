package subagent

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"coder/internal/core/clip"
	"coder/internal/core/message"
)

// ignoredModels lists models in programs for one vendor, and
// names for the main agent's model, which replaces them all.
var ignoredModels = []string{"inherit", "default", "sonnet", "opus", "haiku"}

// ParseDefinitions parses agents that the driving program defines, by name.
func ParseDefinitions(by map[string]json.RawMessage) (list []Definition, err error) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		var g struct {
			Description string   `json:"description"`
			Prompt      string   `json:"prompt"`
			Tools       []string `json:"tools"`
			Without     []string `json:"disallowedTools"`
			Steps       int      `json:"maxTurns"`
			Model       string   `json:"model"`
		}
		err := json.Unmarshal(by[name], &g)
		switch {
		case err != nil:
		case !isValidName(name):
			err = message.Errorf("%q is not a valid name: use letters, digits, - and _, at most %d", name, maxNameLen)
		case strings.TrimSpace(g.Prompt) == "" || strings.TrimSpace(g.Description) == "":
			err = errors.New("no prompt or no description")
		}
		if err != nil {
			return nil, message.Errorf("agent %s: %w", name, err)
		}
		if g.Steps < 1 || g.Steps > maxSteps {
			g.Steps = DefaultSteps
		}
		if slices.Contains(ignoredModels, g.Model) {
			g.Model = ""
		}
		about := clip.Truncate(strings.TrimSpace(g.Description), maxDescriptionLen)
		list = append(list, Definition{
			Name: name, Description: about, LocalDescription: about, Prompt: clip.Truncate(g.Prompt, maxBytes), Tools: g.Tools,
			ExcludedTools: g.Without, MaxSteps: g.Steps, Model: g.Model, Path: "given",
		})
	}
	return list, nil
}

// Prepend returns the catalogue with others first; if two have the same name, the one in others counts.
func (c Catalogue) Prepend(others []Definition) Catalogue {
	kept := slices.DeleteFunc(slices.Clone(c), func(d Definition) bool {
		return slices.ContainsFunc(others, func(o Definition) bool { return strings.EqualFold(o.Name, d.Name) })
	})
	return slices.Concat(others, kept)
}
