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

// linked are the places in hidden folders of the home that links in visible ones lead
// through: ~/.gitconfig, ~/.cargo or a program in ~/.local/bin may lie in ~/.dotfiles.
// Links that commands can make count for nothing, and so do secrets.
func (c *Confiner) linked() (show []string) {
	h := c.home()
	closed := slices.Concat(c.writable(), c.o.State)
	for i := range closed {
		closed[i] = real(closed[i])
	}
	for _, dir := range c.visibleFolders(h) {
		entries, _ := os.ReadDir(filepath.Join(h.at, dir))
		for _, e := range entries {
			rel := path.Join(dir, e.Name())
			if e.Type()&fs.ModeSymlink == 0 || dir == "." && (!strings.HasPrefix(rel, ".") || secret.Dotfile(rel)) {
				continue
			}
			for _, at := range hiddenOnTheWay(h.at, filepath.Join(h.at, rel), closed) {
				if !slices.Contains(show, at) {
					show = append(show, at)
				}
			}
		}
	}
	return show
}

// visibleFolders are the home and its dotfolders that every command sees, by their paths
// from the home, unless commands may write there.
func (c *Confiner) visibleFolders(h homeDir) (dirs []string) {
	if h.at == "" {
		return nil
	}
	all := []string{"."}
	for _, e := range h.entries {
		switch rel := e.Name(); {
		case !strings.HasPrefix(rel, "."):
		case !secret.Dotfile(rel):
			all = append(all, rel)
		default:
			for _, below := range secret.HarmlessIn(rel) {
				all = append(all, path.Join(rel, below))
			}
		}
	}
	for _, dir := range c.o.ToolChains {
		if rel, err := filepath.Rel(h.at, dir); err == nil {
			all = append(all, rel, path.Join(rel, "bin"))
		}
	}
	writable := insideOf(c.writable())
	return slices.DeleteFunc(all, func(rel string) bool { return writable(filepath.Join(h.at, rel)) })
}

// hiddenOnTheWay are the hidden places that a path leads through: each link, and what
// lies at the end. It walks name by name, as the kernel does. A way through a closed
// folder, or to a secret, shows nothing.
func hiddenOnTheWay(home, file string, closed []string) (places []string) {
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
			case below && secret.Is(path.Join("/home/x", rel)), slices.ContainsFunc(closed, func(dir string) bool { return holds(dir, at) }):
				return nil
			case below && secret.Dotfile(rel):
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

// maxLinks bounds the links that a path may lead through.
const maxLinks = 40
