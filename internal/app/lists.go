package app

import (
	"maps"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/model/transport"
)

// listsFile holds the last model lists of endpoints, for offers when
// coder must not ask; mostLists limits the number of endpoints.
const (
	listsFile = "lists.json"
	mostLists = 50
)

// lastListed returns the models that an endpoint listed last.
func (a *Models) lastListed(c config.Provider) []string {
	return slices.Clone(a.lists.of(a.remembers(listsFile), address(c)))
}

// keepList stores an endpoint's list of models.
func (a *Models) keepList(c config.Provider, models []transport.Model) {
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

// address returns an endpoint's address without possible secrets.
func address(c config.Provider) string { return strings.TrimSpace(modelAt(c.BaseURL, "")) }

// Favourites returns the models in the settings (provider.models).
func (a *Models) Favourites() []string { return a.endpoint().Models }

// Scripted reports whether a script plays the model.
func (a *Models) Scripted() bool { return a.scripted() }

// Profiles returns the names of the profiles in the settings.
func (a *Models) Profiles() []string { return slices.Sorted(maps.Keys(a.Config.Profiles)) }
