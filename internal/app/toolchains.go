package app

import (
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/secret"
)

// toolchainDirs are the folders of the home from which programs are run: those that
// variables of tool chains name, those of PATH, and those of plugins.
func (a *Extensions) toolchainDirs() (dirs []string) {
	home := a.Env.Getenv("HOME")
	add := func(dir string, above bool) {
		rel, err := filepath.Rel(home, dir)
		if home == "" || err != nil || !strings.HasPrefix(rel, ".") || !filepath.IsLocal(rel) || rel == "." {
			return
		}
		if above { // programs need files beside their folder
			parts, n := strings.Split(rel, "/"), 1
			for n < len(parts) && secret.IsSharedFolder(strings.Join(parts[:n], "/")) {
				n++
			}
			dir = filepath.Join(home, filepath.Join(parts[:n]...))
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	for _, name := range secret.ToolchainVars() {
		for _, dir := range filepath.SplitList(a.Env.Getenv(name)) {
			add(dir, false)
		}
	}
	for _, dir := range filepath.SplitList(a.Env.Getenv("PATH")) {
		add(dir, true)
	}
	for _, p := range a.plugins {
		add(p.Dir, false)
	}
	return dirs
}
