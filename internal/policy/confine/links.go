package confine

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/secret"
)

// linkTargets returns the paths in hidden folders of the home that links in visible
// ones lead through: ~/.gitconfig, ~/.cargo or a program in ~/.local/bin may be in
// ~/.dotfiles. Links that commands can make do not count, nor do secrets.
func (c *Confiner) linkTargets() (show []string) {
	h := c.readHome()
	closed := slices.Concat(c.writable(), c.o.StateDirs)
	for i := range closed {
		closed[i] = realPath(closed[i])
	}
	for _, dir := range c.visibleFolders(h) {
		entries, _ := os.ReadDir(filepath.Join(h.path, dir))
		for _, e := range entries {
			rel := path.Join(dir, e.Name())
			if e.Type()&fs.ModeSymlink == 0 || dir == "." && (!strings.HasPrefix(rel, ".") || secret.IsHiddenDotfile(rel)) {
				continue
			}
			for _, at := range hiddenLinks(h.path, filepath.Join(h.path, rel), closed) {
				if !slices.Contains(show, at) {
					show = append(show, at)
				}
			}
		}
	}
	return show
}

// visibleFolders returns the home and its dotfolders that every command
// sees, relative to the home, unless commands may write there.
func (c *Confiner) visibleFolders(h homeDir) (dirs []string) {
	if h.path == "" {
		return nil
	}
	all := []string{"."}
	for _, e := range h.entries {
		switch rel := e.Name(); {
		case !strings.HasPrefix(rel, "."):
		case !secret.IsHiddenDotfile(rel):
			all = append(all, rel)
		default:
			for _, below := range secret.HarmlessPlacesIn(rel) {
				all = append(all, path.Join(rel, below))
			}
		}
	}
	for _, dir := range c.o.ToolChains {
		if rel, err := filepath.Rel(h.path, dir); err == nil {
			all = append(all, rel, path.Join(rel, "bin"))
		}
	}
	writable := insideTest(c.writable())
	return slices.DeleteFunc(all, func(rel string) bool { return writable(filepath.Join(h.path, rel)) })
}

// hiddenLinks returns the hidden paths that a path leads through: each link, and the target. It
// walks name by name, like the kernel. A path through a closed folder, or to a secret, reveals nothing.
func hiddenLinks(home, file string, closed []string) (places []string) {
	const separator = string(filepath.Separator)
	at, parts := separator, strings.Split(file, separator)
	for links := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		at = filepath.Join(at, part)
		to, err := os.Readlink(at)
		if isLink := err == nil; isLink || len(parts) == 0 {
			rel, err := filepath.Rel(home, at)
			switch below := err == nil && filepath.IsLocal(rel); {
			case below && secret.IsSecretFile(path.Join("/home/x", rel)),
				slices.ContainsFunc(closed, func(dir string) bool { return contains(dir, at) }):
				return nil
			case below && secret.IsHiddenDotfile(rel):
				places = append(places, at)
			}
		}
		if err != nil {
			continue
		}
		if links++; links > maxLinks {
			return nil
		}
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = separator
		}
		parts = append(strings.Split(to, separator), parts...)
	}
	return places
}

// maxLinks limits the links that a path may lead through.
const maxLinks = 40
