package confine

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/secret"
	"coder/internal/host/sandbox"
)

// homeDir is the home as one command sees it.
type homeDir struct {
	path    string // with links resolved; "" if there is none
	entries []fs.DirEntry
}

func (c *Confiner) readHome() (h homeDir) {
	if c.o.Home == "" {
		return h
	}
	h.path = realPath(c.o.Home)
	h.entries, _ = os.ReadDir(h.path)
	return h
}

// has reports whether the home has the first element of a relative path.
func (h homeDir) has(rel string) bool {
	top, _, _ := strings.Cut(rel, "/")
	return slices.ContainsFunc(h.entries, func(e fs.DirEntry) bool { return e.Name() == top })
}

// dotfiles returns what a command without the user's approval does not see of the home, and exceptions
// inside: all dotfiles are hidden, except for harmless places, tool chains and the workspace. A home
// that is the workspace counts as the workspace.
func (c *Confiner) dotfiles(h homeDir) (hide, show []string) {
	root := realPath(c.o.Root)
	if h.path == "" || contains(root, h.path) {
		return nil, nil
	}
	show = append(slices.Clone(c.o.Write), root)
	seen := append(slices.Clone(show), c.o.ToolChains...)
	show = append(show, c.links()...)
	for _, dir := range c.o.ToolChains {
		if rel, err := filepath.Rel(h.path, dir); err == nil &&
			!secret.IsSecretFile(path.Join("/home/x", filepath.ToSlash(rel), "x")) {
			show = append(show, dir)
		}
	}
	var look func(dir string, entries []fs.DirEntry)
	look = func(dir string, entries []fs.DirEntry) {
		for _, e := range entries {
			rel := path.Join(dir, e.Name())
			at := filepath.Join(h.path, rel)
			isLink := e.Type()&fs.ModeSymlink != 0
			if isLink {
				at = realPath(at)
			}
			switch {
			case !secret.IsHiddenDotfile(rel), slices.Contains(seen, at):
			case isLink && (!contains(h.path, at) || contains(root, at)): // leads to no dotfile, or to the workspace
			case contains(at, root) && secret.IsSharedFolder(rel):
				inside, _ := os.ReadDir(at)
				look(rel, inside)
			case contains(at, root):
			default:
				hide = append(hide, at)
				for _, harmless := range secret.HarmlessPlacesIn(rel) {
					show = append(show, filepath.Join(at, harmless))
				}
			}
		}
	}
	look("", h.entries)
	return hide, show
}

// realPath returns a path with links resolved, or the path itself if it does not exist.
func realPath(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return filepath.Clean(path)
}

// isHomeIn reports whether the home is in a folder that is
// writable but not the workspace, such as a temporary one.
func (c *Confiner) isHomeIn(dir string) bool {
	return c.o.Home != "" && dir != c.o.Root && contains(realPath(dir), realPath(c.o.Home)) &&
		!contains(realPath(c.o.Root), realPath(c.o.Home))
}

// grantedDirs returns the writable folders as far as the machine can separate them
// from the home. Landlock cannot exclude anything from a granted folder, so of
// one that contains the home only the folders beside the home are granted.
func (c *Confiner) grantedDirs(ctx context.Context) (dirs []string) {
	all := c.writable()
	if !c.usesOnlyLandlock(ctx) || !slices.ContainsFunc(all, c.isHomeIn) {
		return all
	}
	for _, dir := range all {
		if !c.isHomeIn(dir) {
			dirs = append(dirs, dir)
			continue
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			if e.IsDir() && !contains(at, realPath(c.o.Home)) && !contains(realPath(c.o.Home), at) {
				dirs = append(dirs, at)
			}
		}
	}
	return existingPaths(dirs)
}

// usesOnlyLandlock reports whether commands are confined by Landlock alone.
func (c *Confiner) usesOnlyLandlock(ctx context.Context) bool {
	return c.o.Demand != Off && c.findSandbox(ctx).Backend() == sandbox.Landlock
}

// tempEnv returns variables for another temporary folder, for a command that cannot write to the usual one.
func (c *Confiner) tempEnv(ctx context.Context) []string {
	if !c.usesOnlyLandlock(ctx) || !c.isHomeIn(os.TempDir()) {
		return nil
	}
	for _, dir := range TempDirs() {
		if _, err := os.Stat(dir); err == nil && !c.isHomeIn(dir) {
			return []string{"TMPDIR=" + dir}
		}
	}
	return nil
}
