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
	at      string // with links resolved; "" if there is none
	entries []fs.DirEntry
}

func (c *Confiner) home() (h homeDir) {
	if c.o.Home == "" {
		return h
	}
	h.at = real(c.o.Home)
	h.entries, _ = os.ReadDir(h.at)
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
	root := real(c.o.Root)
	if h.at == "" || holds(root, h.at) {
		return nil, nil
	}
	show = append(slices.Clone(c.o.Write), root)
	seen := append(slices.Clone(show), c.o.ToolChains...)
	show = append(show, c.links()...)
	for _, dir := range c.o.ToolChains {
		if rel, err := filepath.Rel(h.at, dir); err == nil && !secret.Is(path.Join("/home/x", filepath.ToSlash(rel), "x")) {
			show = append(show, dir)
		}
	}
	var look func(dir string, entries []fs.DirEntry)
	look = func(dir string, entries []fs.DirEntry) {
		for _, e := range entries {
			rel := path.Join(dir, e.Name())
			at := filepath.Join(h.at, rel)
			isLink := e.Type()&fs.ModeSymlink != 0
			if isLink {
				at = real(at)
			}
			switch {
			case !secret.Dotfile(rel), slices.Contains(seen, at):
			case isLink && (!holds(h.at, at) || holds(root, at)): // leads to no dotfile, or to the workspace
			case holds(at, root) && secret.SharedFolder(rel):
				inside, _ := os.ReadDir(at)
				look(rel, inside)
			case holds(at, root):
			default:
				hide = append(hide, at)
				for _, harmless := range secret.HarmlessIn(rel) {
					show = append(show, filepath.Join(at, harmless))
				}
			}
		}
	}
	look("", h.entries)
	return hide, show
}

// real returns a path with links resolved, or the path itself if it does not exist.
func real(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return filepath.Clean(path)
}

// homeIn reports whether the home is in a folder that is
// writable but not the workspace, such as a temporary one.
func (c *Confiner) homeIn(dir string) bool {
	return c.o.Home != "" && dir != c.o.Root && holds(real(dir), real(c.o.Home)) && !holds(real(c.o.Root), real(c.o.Home))
}

// granted returns the writable folders as far as the machine can separate them
// from the home. Landlock cannot exclude anything from a granted folder, so of
// one that contains the home only the folders beside the home are granted.
func (c *Confiner) granted(ctx context.Context) (dirs []string) {
	all := c.writable()
	if !c.onlyLandlock(ctx) || !slices.ContainsFunc(all, c.homeIn) {
		return all
	}
	for _, dir := range all {
		if !c.homeIn(dir) {
			dirs = append(dirs, dir)
			continue
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			if e.IsDir() && !holds(at, real(c.o.Home)) && !holds(real(c.o.Home), at) {
				dirs = append(dirs, at)
			}
		}
	}
	return existing(dirs)
}

// onlyLandlock reports whether commands are confined by Landlock alone.
func (c *Confiner) onlyLandlock(ctx context.Context) bool {
	return c.o.Demand != Off && c.find(ctx).Backend() == sandbox.Landlock
}

// temporary returns variables for another temporary folder, for a command that cannot write to the usual one.
func (c *Confiner) temporary(ctx context.Context) []string {
	if !c.onlyLandlock(ctx) || !c.homeIn(os.TempDir()) {
		return nil
	}
	for _, dir := range Temporary() {
		if _, err := os.Stat(dir); err == nil && !c.homeIn(dir) {
			return []string{"TMPDIR=" + dir}
		}
	}
	return nil
}
