package app

import (
	"context"
	"maps"
	"slices"

	"coder/internal/host/workspace"
)

// WalkPaths passes each the files and folders of the workspace that are not ignored,
// near ones first, folders with a slash at the end, until each returns false.
func (a *Site) WalkPaths(ctx context.Context, each func(path string) bool) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return // the session reports the error
	}
	defer ws.Close()
	ws.UseGitSettings(a.Env.gitIgnoreSettings())
	for _, dir := range slices.Concat([]string{"."}, ws.AddedDirs()) {
		for e := range ws.Walk(ctx, dir, 0) {
			name := e.Path
			if e.IsDir() {
				name += "/"
			}
			if e.Err == nil && !e.Ignored && !each(name) {
				return
			}
		}
	}
}

// KnownModels returns the current endpoint's models, as far as
// known without asking: those in the settings and in its last list.
func (a *Models) KnownModels() []string {
	c := a.endpoint()
	return uniqueNames(slices.Concat([]string{a.ModelName()}, c.Models, c.FallbackModels,
		slices.Sorted(maps.Keys(c.ModelInfo)), a.lastModelList(c)))
}

// ModelNames returns the names that /model accepts, as far as known without asking an endpoint.
func (a *Models) ModelNames() []string {
	return uniqueNames(append(a.KnownModels(), slices.Sorted(maps.Keys(a.Config.Profiles))...))
}

// FetchModelNames returns [Models.ModelNames] and the models that the
// endpoint lists. It asks the endpoint until it gets an answer.
func (a *Models) FetchModelNames(ctx context.Context) []string {
	base := a.endpoint().BaseURL
	if a.asked.of != base {
		if list, err := a.fetchModels(ctx); err == nil {
			a.asked.of, a.asked.names = base, nil
			for _, m := range list {
				a.asked.names = append(a.asked.names, m.Name)
			}
		}
	}
	names := a.ModelNames()
	if a.asked.of == base {
		names = append(names, a.asked.names...)
	}
	return uniqueNames(names)
}

// uniqueNames returns names without duplicates and empty names.
func uniqueNames(names []string) []string {
	seen := make(map[string]bool)
	return slices.DeleteFunc(names, func(name string) bool {
		twice := seen[name] || name == ""
		seen[name] = true
		return twice
	})
}
