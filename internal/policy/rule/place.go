package rule

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// place is a file as rules see it: below the workspace by its path from there,
// elsewhere by its absolute path.
func (b *Book) place(file string) string {
	file = strings.TrimPrefix(file, "file://")
	if rest, ok := strings.CutPrefix(file, "~/"); ok && b.Home != "" {
		file = filepath.Join(b.Home, rest)
	}
	if !filepath.IsAbs(file) {
		return path.Clean(filepath.ToSlash(file))
	}
	if rel, err := filepath.Rel(b.Root, file); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return filepath.ToSlash(rel)
	}
	return path.Clean(filepath.ToSlash(file))
}

// covers reports whether a pattern is about a file: by its name alone if the
// pattern holds no slash, else by its whole path. A pattern for a folder covers
// what is in it.
func (b *Book) covers(pattern, place string) bool {
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok && b.Home != "" {
		pattern = b.place(filepath.Join(b.Home, rest))
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if folder, ok := strings.CutSuffix(pattern, "/"); ok {
		pattern = folder + "/**"
	}
	if !strings.Contains(pattern, "/") {
		return matchFold(pattern, path.Base(place))
	}
	if !path.IsAbs(pattern) && path.IsAbs(place) {
		pattern = "**/" + pattern
	}
	return matchFold(pattern, place)
}

// matchFold matches whatever the case: on some file systems .ENV is .env.
func matchFold(pattern, name string) bool {
	ok, err := doublestar.Match(strings.ToLower(pattern), strings.ToLower(name))
	return err == nil && ok
}
