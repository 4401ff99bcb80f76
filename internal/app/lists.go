package app

import (
	"maps"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/model/transport"
)

// listsFile holds the models that endpoints last said they have, so that they can be
// offered where nobody may be asked; mostLists is of how many endpoints.
const (
	listsFile = "lists.json"
	mostLists = 50
)

// lastListed are the models that an endpoint last said it has.
func (a *App) lastListed(c config.Provider) []string {
	return slices.Clone(a.lists.of(a.remembers(listsFile), address(c)))
}

// keepList remembers what an endpoint says it has.
func (a *App) keepList(c config.Provider, models []transport.Model) {
	var names []string
	for _, m := range models[:min(len(models), mostModels)] {
		names = append(names, m.Name)
	}
	a.lists.change(a.remembers(listsFile), address(c), mostLists, func(was *[]string) bool {
		changed := len(names) > 0 && !slices.Equal(*was, names)
		*was = names
		return changed
	})
}

// address is where an endpoint is, without what may be secret in it.
func address(c config.Provider) string { return strings.TrimSpace(modelAt(c.BaseURL, "")) }

// Favourites are the models of the settings (provider.models).
func (a *App) Favourites() []string { return a.endpoint().Models }

// Scripted reports whether a script plays the model.
func (a *App) Scripted() bool { return a.scripted() }

// Profiles are the names of the profiles in the settings.
func (a *App) Profiles() []string { return slices.Sorted(maps.Keys(a.Config.Profiles)) }
