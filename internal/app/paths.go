package app

import (
	"context"
	"maps"
	"slices"

	"coder/internal/host/workspace"
)

// Paths passes each the files and folders of the workspace that are not ignored,
// near ones first, folders with a slash at the end, until each returns false.
func (a *Site) Paths(ctx context.Context, each func(path string) bool) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return // the session reports the error
	}
	defer ws.Close()
	ws.UseGitSettings(a.Env.gitSettings())
	for _, dir := range slices.Concat([]string{"."}, ws.Added()) {
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
	return once(slices.Concat([]string{a.ModelName()}, c.Models, c.FallbackModels, slices.Sorted(maps.Keys(c.ModelInfo)), a.lastListed(c)))
}

// ModelNames returns the names that /model accepts, as far as known without asking an endpoint.
func (a *Models) ModelNames() []string {
	return once(append(a.KnownModels(), slices.Sorted(maps.Keys(a.Config.Profiles))...))
}

// Offered returns [Models.ModelNames] and the models that the
// endpoint lists. It asks the endpoint until it gets an answer.
func (a *Models) Offered(ctx context.Context) []string {
	base := a.endpoint().BaseURL
	if a.asked.of != base {
		if list, err := a.offered(ctx); err == nil {
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
	return once(names)
}

// once returns names without duplicates and empty names.
func once(names []string) []string {
	seen := make(map[string]bool)
	return slices.DeleteFunc(names, func(name string) bool {
		twice := seen[name] || name == ""
		seen[name] = true
		return twice
	})
}
