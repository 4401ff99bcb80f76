package app

import (
	"coder/internal/config"
	"coder/internal/core/secret"
	"slices"
	"strings"
)

// ChildEnv is the environment of the commands we run: ours without any
// provider's key, and without what looks like a secret unless the person allows
// it by name.
func (a *App) ChildEnv() []string {
	env := slices.DeleteFunc(slices.Clone(a.Env.Environ), a.withholds)
	return append(env, a.marked())
}

// withholds reports whether commands do not get a variable.
func (a *App) withholds(kv string) bool {
	name, value, _ := strings.Cut(kv, "=")
	if a.Config.Provider.APIKey != "" && value == a.Config.Provider.APIKey || slices.Contains(config.KeyVariables(), name) {
		return true
	}
	return secret.Variable(name, value) && !slices.Contains(a.Config.Safety.EnvAllow, name)
}

// Withheld are the names of the variables that commands do not get.
func (a *App) Withheld() (names []string) {
	for _, kv := range a.Env.Environ {
		if a.withholds(kv) {
			name, _, _ := strings.Cut(kv, "=")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// marked is the entry by which what a killed program left running in this
// workspace is found again.
func (a *App) marked() string { return "CODER_WORKSPACE=" + a.Root }
