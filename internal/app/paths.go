package app

import (
	"context"
	"maps"
	"slices"

	"coder/internal/host/workspace"
)

// Paths gives the files and folders of the workspace that are not ignored, the
// near before the far, those of folders with a slash at their end, until each has
// enough.
func (a *App) Paths(ctx context.Context, each func(path string) bool) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return // told by the session, which needs it more
	}
	defer ws.Close()
	ws.UseGitSettings(a.gitSettings())
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

// KnownModels are the models of the endpoint in use, as far as they are known
// without asking it: those of the settings, and of the list that it gave last.
func (a *App) KnownModels() []string {
	c := a.endpoint()
	return once(slices.Concat([]string{a.ModelName()}, c.Models, c.FallbackModels, slices.Sorted(maps.Keys(c.ModelInfo)), a.lastListed(c)))
}

// ModelNames are the names that /model takes, as far as they are known without
// asking an endpoint.
func (a *App) ModelNames() []string {
	return once(append(a.KnownModels(), slices.Sorted(maps.Keys(a.Config.Profiles))...))
}

// Offered are [App.ModelNames] and those that the endpoint says it has. It is asked
// until it has answered.
func (a *App) Offered(ctx context.Context) []string {
	base := a.endpoint().BaseURL
	if a.models.of != base {
		if list, err := a.offered(ctx); err == nil {
			a.models.of, a.models.names = base, nil
			for _, m := range list {
				a.models.names = append(a.models.names, m.Name)
			}
		}
	}
	names := a.ModelNames()
	if a.models.of == base {
		names = append(names, a.models.names...)
	}
	return once(names)
}

// once is names without those that stand there before, or are none.
func once(names []string) []string {
	seen := make(map[string]bool)
	return slices.DeleteFunc(names, func(name string) bool {
		twice := seen[name] || name == ""
		seen[name] = true
		return twice
	})
}
