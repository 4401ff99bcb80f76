package app

import (
	"maps"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/model/transport"
)

// modelListsFile holds the last model lists of endpoints, for offers when
// coder must not ask; maxModelLists limits the number of endpoints.
const (
	modelListsFile = "lists.json"
	maxModelLists  = 50
)

// lastModelList returns the models that an endpoint listed last.
func (a *Models) lastModelList(c config.Provider) []string {
	return slices.Clone(a.modelLists.get(a.factsFile(modelListsFile), publicAddress(c)))
}

// saveModelList stores an endpoint's list of models.
func (a *Models) saveModelList(c config.Provider, models []transport.Model) {
	var names []string
	for _, m := range models[:min(len(models), maxModels)] {
		names = append(names, m.Name)
	}
	a.modelLists.update(a.factsFile(modelListsFile), publicAddress(c), maxModelLists, func(was *[]string) bool {
		changed := len(names) > 0 && !slices.Equal(*was, names)
		*was = names
		return changed
	})
}

// publicAddress returns an endpoint's address without possible secrets.
func publicAddress(c config.Provider) string { return strings.TrimSpace(modelKey(c.BaseURL, "")) }

// FavoriteModels returns the models in the settings (provider.models).
func (a *Models) FavoriteModels() []string { return a.endpoint().Models }

// IsScripted reports whether a script plays the model.
func (a *Models) IsScripted() bool { return a.isScripted() }

// ProfileNames returns the names of the profiles in the settings.
func (a *Models) ProfileNames() []string { return slices.Sorted(maps.Keys(a.Config.Profiles)) }
